// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// readFiles parses files of the AWS command line by the SDK, and refuses dangerous entries. It
// does not wrap the SDK's errors: they may quote lines.
func readFiles(ctx context.Context, credentials, config []byte) (awsconfig.SharedConfig, error) {
	none := awsconfig.SharedConfig{}
	credentialsPath, closeCredentials, err := inMemory("credentials", credentials)
	if err != nil {
		return none, err
	}
	defer closeCredentials()
	configPath, closeConfig, err := inMemory("config", config)
	if err != nil {
		return none, err
	}
	defer closeConfig()

	files, err := awsconfig.LoadSharedConfigProfile(ctx, "default", func(o *awsconfig.LoadSharedConfigOptions) {
		o.CredentialsFiles, o.ConfigFiles = []string{credentialsPath}, []string{configPath}
	})
	var noProfile awsconfig.SharedConfigProfileNotExistError
	var noSource awsconfig.SharedConfigAssumeRoleError
	switch {
	case errors.As(err, &noSource):
		return none, fmt.Errorf("%w: the source_profile of a role_arn has no keys in credentials", store.ErrConfig)
	case errors.As(err, &noProfile):
		return none, fmt.Errorf("%w: neither credentials nor config has a profile [default]", store.ErrConfig)
	case err != nil:
		return none, fmt.Errorf("%w: credentials and config are not as the files of the AWS command line of these names: lines such as `name = value` below [default], of which credentials needs both aws_access_key_id and aws_secret_access_key; or a value is not allowed", store.ErrConfig)
	}
	if refused := foreignEntries(files); len(refused) > 0 {
		return none, fmt.Errorf("%w: %s in credentials or config would use programs, files or an identity of the operator: write keys into credentials instead", store.ErrConfig, strings.Join(refused, ", "))
	}
	return files, nil
}

// foreignEntries returns the entries that take credentials from elsewhere than the files: from
// programs, files, caches or the identity of the operator's machine.
func foreignEntries(files awsconfig.SharedConfig) []string {
	var refused []string
	for profile := &files; profile != nil; profile = profile.Source {
		for _, entry := range []struct {
			name string
			is   bool
		}{
			{"credential_process", profile.CredentialProcess != ""},
			{"credential_source", profile.CredentialSource != ""},
			{"web_identity_token_file", profile.WebIdentityTokenFile != ""},
			{"ca_bundle", profile.CustomCABundle != ""},
			{"sso_session", profile.SSOSessionName != ""},
			{"sso_start_url", profile.SSOStartURL != "" || profile.SSOAccountID != "" || profile.SSORoleName != "" || profile.SSORegion != ""},
			{"login_session", profile.LoginSession != ""},
			{"mfa_serial", profile.MFASerial != ""},
		} {
			if entry.is {
				refused = append(refused, entry.name)
			}
		}
	}
	return refused
}
