// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// access is the credentials, region and endpoint of a bucket.
type access struct {
	credentials aws.CredentialsProvider
	http        *awshttp.BuildableClient
	region      string // may be empty
	endpoint    string // may be empty
	// own: the credentials are those of the process.
	own bool
	// ownEndpoint is the endpoint that the process is configured with; may be empty.
	ownEndpoint string
	attempts    int // 0: the SDK's default
	fips        aws.FIPSEndpointState
	dualStack   aws.DualStackEndpointState
}

// findAccess prefers the user's files. If they have credentials, it ignores the process's own,
// such as a role of its service account or AWS_ACCESS_KEY_ID: those are another's.
func findAccess(ctx context.Context, config Config, client *awshttp.BuildableClient) (access, error) {
	var files awsconfig.SharedConfig
	if len(config.Credentials) > 0 || len(config.ConfigFile) > 0 {
		var err error
		if files, err = readFiles(ctx, config.Credentials, config.ConfigFile); err != nil {
			return access{}, err
		}
	}
	found := access{
		http: client, region: files.Region, endpoint: endpointOf(files), attempts: files.RetryMaxAttempts,
		fips: files.UseFIPSEndpoint, dualStack: files.UseDualStackEndpoint,
	}
	switch {
	case innermost(files).Credentials.HasKeys():
		found.credentials = assumed(files, client)
		return found, nil
	case len(config.Credentials) > 0:
		return access{}, fmt.Errorf("%w: credentials has no aws_access_key_id and aws_secret_access_key below [default]", store.ErrConfig)
	case files.RoleARN != "":
		return access{}, fmt.Errorf("%w: config has a role_arn below [default], but there are no keys to assume it with", store.ErrConfig)
	}
	// The SDK's files are excluded: they depend on the pod.
	ambient, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithHTTPClient(client))
	if err != nil {
		return access{}, fmt.Errorf("%w: the operator's own configuration of AWS: %w", store.ErrConfig, err)
	}
	// AWS_CA_BUNDLE may have added other CAs.
	if changed, ok := ambient.HTTPClient.(*awshttp.BuildableClient); ok {
		found.http = changed
	}
	found.credentials, found.own = ownCredentials{ambient.Credentials}, true
	if found.region == "" {
		found.region = ambient.Region
	}
	// The SDK reads the first one only when it creates a client.
	found.ownEndpoint = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), aws.ToString(ambient.BaseEndpoint))
	found.endpoint = cmp.Or(found.endpoint, found.ownEndpoint)
	return found, nil
}

// amazon matches S3's own hosts, with its private endpoints. Other hosts below amazonaws.com
// and amazonaws.eu belong to Amazon's customers.
var amazon = regexp.MustCompile(`^([a-z0-9.-]+\.)?s3(-[a-z0-9-]+)?(\.dualstack)?(\.[a-z]+(-[a-z]+)+-[0-9]+(\.vpce)?)?\.amazonaws\.(com(\.cn)?|eu)$`)

// check refuses to send the process's credentials to an endpoint that somebody else has named.
// Otherwise the creator of a backup could steal them, or what they sign.
func (a access) check(endpoint string) error {
	if !a.own || endpoint == "" {
		return nil
	}
	if own, err := checkEndpoint(a.ownEndpoint); err == nil && endpoint == own {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err == nil && u.Scheme == "https" && (u.Port() == "" || u.Port() == "443") && amazon.MatchString(strings.ToLower(u.Hostname())) {
		return nil
	}
	return fmt.Errorf("%w: the endpoint is not one of Amazon S3 by https, which the operator's own credentials are for: name a Secret with credentials for it", store.ErrConfig)
}

// ownCredentials are those of the process. If there are none, the error says so: the store has
// refused nothing, and the failure may pass.
type ownCredentials struct{ aws.CredentialsProvider }

func (c ownCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	value, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		err = noCredentials{err}
	}
	return value, err
}

// assumed returns the keys of the innermost profile, and the roles that the others assume with
// them.
func assumed(files awsconfig.SharedConfig, client *awshttp.BuildableClient) aws.CredentialsProvider {
	var provider aws.CredentialsProvider
	if files.Source != nil {
		provider = assumed(*files.Source, client)
	} else {
		provider = credentials.StaticCredentialsProvider{Value: files.Credentials}
	}
	if files.RoleARN == "" {
		return provider
	}
	service := sts.New(sts.Options{Region: files.Region, Credentials: provider, HTTPClient: client})
	return aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(service, files.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = files.RoleSessionName
		if o.RoleSessionName == "" {
			o.RoleSessionName = "etcd-backup-operator"
		}
		if files.ExternalID != "" {
			o.ExternalID = &files.ExternalID
		}
		if files.RoleDurationSeconds != nil {
			o.Duration = *files.RoleDurationSeconds
		}
	}))
}

// innermost returns the profile at the end of the chain of source_profile.
func innermost(files awsconfig.SharedConfig) awsconfig.SharedConfig {
	for files.Source != nil {
		files = *files.Source
	}
	return files
}

// endpointOf returns the endpoint_url for S3 in the files.
func endpointOf(files awsconfig.SharedConfig) string {
	if files.IgnoreConfiguredEndpoints != nil && *files.IgnoreConfiguredEndpoints {
		return ""
	}
	if endpoint := files.Services.ServiceValues["s3"]["endpoint_url"]; endpoint != "" {
		return endpoint
	}
	return files.BaseEndpoint
}
