# Every target calls what a person would type; nothing is done here alone.

.DEFAULT_GOAL := help
.PHONY: help demo test affected check unit lint prose stores e2e docs bench generate build image kube-up kube-down

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' Makefile

demo: ## Show the operator at work on a local Kubernetes (root)
	hack/demo

test: ## Run all checks and tests (root)
	hack/test

affected: ## Run the checks and tests that the change since main can have broken
	hack/test --affected

check: ## Run what needs no Kubernetes: format, scripts, prose, modules, generated code, lint, unit tests, stores
	hack/test --quick

unit: ## Run the unit tests of all modules, with the race detector
	hack/test unit

lint: ## Run the linters
	hack/test lint

prose: ## Check the language of the pages and of the API's comments
	hack/test prose

stores: ## Test the stores of backups against servers that speak their protocols
	hack/test stores

e2e: ## Run the end-to-end tests on the local Kubernetes (root)
	hack/test e2e

docs: ## Run every command of the documentation on the local Kubernetes (root)
	hack/test docs

bench: ## Measure the operator on the local Kubernetes (root)
	hack/bench

generate: ## Regenerate deep copies, CRD and client from the types
	hack/update-codegen.sh

build: ## Build the operator into dist/
	CGO_ENABLED=0 go build -trimpath -o dist/etcd-operator ./cmd/operator

image: ## Build the operator's image into dist/, without a container engine
	hack/image

kube-up: ## Start the local Kubernetes (root)
	hack/kube up

kube-down: ## Take the local Kubernetes down (root)
	hack/kube down
