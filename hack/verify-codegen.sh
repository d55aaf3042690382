#!/usr/bin/env bash
# Copyright The etcd-operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails if generated files differ from what the types in pkg/apis generate. Changes nothing.

set -o errexit -o nounset -o pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/update-codegen.sh" --verify
