// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/test/environment"
)

const (
	secretKey  = "wJalrXUtnFEMI/K7MDENG"
	keysFile   = "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = " + secretKey + "\n"
	regionFile = "[default]\nregion = eu-central-1\n"
)

// isolate keeps what the machine has of AWS out of a test.
func isolate(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	environment.Forget(t, "AWS_")
	for name, value := range map[string]string{
		"HOME": home, "TMPDIR": home, "AWS_CONFIG_FILE": filepath.Join(home, "config"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(home, "credentials"),
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() {
		left, err := os.ReadDir(home)
		if err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, error %v", left, err)
		}
	})
}

func TestFilesOfTheAWSCommandLineAreUnderstood(t *testing.T) {
	for _, tt := range []struct {
		name     string
		config   Config
		region   string
		endpoint string
	}{
		{"credentials and region", Config{Credentials: []byte(keysFile), ConfigFile: []byte(regionFile)}, "eu-central-1", ""},
		{"windows' line ends", Config{Credentials: []byte(strings.ReplaceAll(keysFile, "\n", "\r\n")), ConfigFile: []byte(regionFile)}, "eu-central-1", ""},
		{"no new line at the end", Config{Credentials: []byte(strings.TrimSpace(keysFile)), ConfigFile: []byte(strings.TrimSpace(regionFile))}, "eu-central-1", ""},
		{"profile default", Config{Credentials: []byte(keysFile), ConfigFile: []byte("[profile default]\nregion = eu-central-1\n")}, "eu-central-1", ""},
		{"all in credentials", Config{Credentials: []byte(keysFile + "region = eu-central-1\n")}, "eu-central-1", ""},
		{"all in config", Config{ConfigFile: []byte(keysFile + "region = eu-central-1\n")}, "eu-central-1", ""},
		{"endpoint alone", Config{Credentials: []byte(keysFile), Endpoint: "http://minio:9000/"}, "us-east-1", "http://minio:9000"},
		{"endpoint without a scheme", Config{Credentials: []byte(keysFile), Endpoint: "minio:9000"}, "us-east-1", "https://minio:9000"},
		{"endpoint in config", Config{Credentials: []byte(keysFile), ConfigFile: []byte(regionFile + "endpoint_url = http://minio:9000\n")}, "eu-central-1", "http://minio:9000"},
		{
			"endpoint of S3 in config",
			Config{Credentials: []byte(keysFile), ConfigFile: []byte("[default]\nservices = mine\nendpoint_url = http://other\n[services mine]\ns3 =\n  endpoint_url = http://minio:9000\n")},
			"us-east-1", "http://minio:9000",
		},
		{"endpoint before that in config", Config{Endpoint: "http://first", Credentials: []byte(keysFile), ConfigFile: []byte("[default]\nendpoint_url = http://second\n")}, "us-east-1", "http://first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			isolate(t)
			tt.config.Bucket = "backups"
			opened, err := Open(t.Context(), tt.config)
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			options := opened.client.Options()
			endpoint := ""
			if options.BaseEndpoint != nil {
				endpoint = *options.BaseEndpoint
			}
			if options.Region != tt.region || endpoint != tt.endpoint {
				t.Errorf("region %s, endpoint %s; want %s, %s", options.Region, endpoint, tt.region, tt.endpoint)
			}
			value, err := options.Credentials.Retrieve(t.Context())
			if err != nil || value.AccessKeyID != "AKIDEXAMPLE" || value.SecretAccessKey != secretKey {
				t.Errorf("credentials of %s, error %v", value.AccessKeyID, err)
			}
		})
	}
}

// The operator's own credentials are not used by one who brings others, or who
// brings bad ones.
func TestCredentialsOfTheProcessAreForThoseWithoutOthers(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "OPERATOR")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of the operator")
	t.Setenv("AWS_REGION", "us-west-2")
	for _, tt := range []struct {
		name        string
		config      Config
		key, region string
	}{
		{"none", Config{}, "OPERATOR", "us-west-2"},
		{"region", Config{ConfigFile: []byte(regionFile)}, "OPERATOR", "eu-central-1"},
		{"credentials", Config{Credentials: []byte(keysFile), ConfigFile: []byte(regionFile)}, "AKIDEXAMPLE", "eu-central-1"},
	} {
		tt.config.Bucket = "backups"
		opened, err := Open(t.Context(), tt.config)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		defer opened.Close()
		options := opened.client.Options()
		value, err := options.Credentials.Retrieve(t.Context())
		if err != nil || value.AccessKeyID != tt.key || options.Region != tt.region {
			t.Errorf("%s: credentials of %s, region %s, error %v", tt.name, value.AccessKeyID, options.Region, err)
		}
	}
	if opened, err := Open(t.Context(), Config{Bucket: "backups", Credentials: []byte("[default]\n"), ConfigFile: []byte(regionFile)}); !errors.Is(err, store.ErrConfig) {
		t.Errorf("credentials without keys: %v, error %v", opened, err)
	}
}

// Whoever may create a backup names the endpoint.
func TestCredentialsOfTheProcessGoToAmazonOnly(t *testing.T) {
	for _, tt := range []struct {
		endpoint string
		own      string // AWS_ENDPOINT_URL_S3
		allowed  bool
	}{
		{"", "", true},
		{"https://s3.eu-central-1.amazonaws.com", "", true},
		{"s3.amazonaws.com", "", true},
		{"https://S3.AmazonAWS.com:443/", "", true},
		{"https://s3.dualstack.us-gov-west-1.amazonaws.com", "", true},
		{"https://s3-fips.us-east-1.amazonaws.com", "", true},
		{"https://s3-accelerate.dualstack.amazonaws.com", "", true},
		{"https://s3.cn-north-1.amazonaws.com.cn", "", true},
		{"https://s3.eusc-de-east-1.amazonaws.eu", "", true},
		{"https://s3.eusc-de-east-1.amazonaws.eu.example.com", "", false},
		{"https://bucket.vpce-1a2b3c4d-5e6f.s3.us-east-1.vpce.amazonaws.com", "", true},
		{"http://s3.eu-central-1.amazonaws.com", "", false},
		{"https://s3.eu-central-1.amazonaws.com:8443", "", false},
		{"https://minio.example.com", "", false},
		{"https://s3.amazonaws.com.example.com", "", false},
		{"https://examples3.amazonaws.com", "", false},
		{"https://s3x.execute-api.us-east-1.amazonaws.com", "", false},
		{"https://s3-1.us-east-1.elb.amazonaws.com", "", false},
		{"https://ec2-1-2-3-4.compute-1.amazonaws.com", "", false},
		{"https://minio.example.com", "https://minio.example.com/", true},
		{"", "http://minio:9000", true},
		{"http://minio:9000", "minio:9000", false},
		{"https://other.example.com", "https://minio.example.com", false},
	} {
		isolate(t)
		t.Setenv("AWS_ACCESS_KEY_ID", "OPERATOR")
		t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
		t.Setenv("AWS_REGION", "us-west-2")
		t.Setenv("AWS_ENDPOINT_URL_S3", tt.own)
		inSpec := Config{Bucket: "backups", Endpoint: tt.endpoint}
		inSecret := Config{Bucket: "backups", ConfigFile: []byte("[default]\nendpoint_url = " + tt.endpoint + "\n")}
		for place, config := range map[string]Config{"spec": inSpec, "Secret": inSecret} {
			opened, err := Open(t.Context(), config)
			if err == nil {
				opened.Close()
			}
			if tt.allowed && err != nil || !tt.allowed && (!errors.Is(err, store.ErrConfig) || !strings.Contains(err.Error(), "name a Secret with credentials")) {
				t.Errorf("%q in the %s, %q of the process: %v", tt.endpoint, place, tt.own, err)
			}
			config.Credentials = []byte(keysFile + "region = us-west-2\n")
			if opened, err = Open(t.Context(), config); err != nil {
				t.Errorf("%q in the %s with credentials: %v", tt.endpoint, place, err)
				continue
			}
			opened.Close()
		}
	}
}

func TestUnusableConfigurationIsRefused(t *testing.T) {
	role := "role_arn = arn:aws:iam::1:role/x\n"
	for _, tt := range []struct {
		name   string
		config Config
		want   string // in the error
	}{
		{"no bucket", Config{Credentials: []byte(keysFile), ConfigFile: []byte(regionFile)}, "bucket"},
		{"no region", Config{Bucket: "b", Credentials: []byte(keysFile)}, "region"},
		{"no profile", Config{Bucket: "b", Credentials: []byte("[other]\naws_access_key_id = a\n")}, "[default]"},
		{"no keys", Config{Bucket: "b", Credentials: []byte("[default]\n"), ConfigFile: []byte(regionFile)}, "aws_access_key_id"},
		{"half of the keys", Config{Bucket: "b", Credentials: []byte("[default]\naws_secret_access_key = " + secretKey), ConfigFile: []byte(regionFile)}, "aws_access_key_id"},
		{"not such a file", Config{Bucket: "b", Credentials: []byte(secretKey)}, "[default]"},
		{"bad values", Config{Bucket: "b", Credentials: []byte(keysFile + "max_attempts = " + secretKey)}, "not allowed"},
		{"CA", Config{Bucket: "b", Credentials: []byte(keysFile), ConfigFile: []byte(regionFile), CA: []byte(secretKey)}, "ca.crt"},
		{"program", Config{Bucket: "b", ConfigFile: []byte(regionFile + "credential_process = /bin/touch /tmp/mine\n")}, "credential_process"},
		{"program in credentials", Config{Bucket: "b", Credentials: []byte("[default]\ncredential_process = /bin/true\n")}, "credential_process"},
		{"program beside keys", Config{Bucket: "b", Credentials: []byte(keysFile + "credential_process = /bin/true\n"), ConfigFile: []byte(regionFile)}, "credential_process"},
		{"program of the source", Config{Bucket: "b", ConfigFile: []byte(regionFile + role + "source_profile = p\n[profile p]\ncredential_process = /bin/true\n")}, "credential_process"},
		{"token of the pod", Config{Bucket: "b", ConfigFile: []byte(regionFile + role + "web_identity_token_file = /var/run/secrets/token\n")}, "web_identity_token_file"},
		{"role of the machine", Config{Bucket: "b", ConfigFile: []byte(regionFile + role + "credential_source = Ec2InstanceMetadata\n")}, "credential_source"},
		{"role of the operator", Config{Bucket: "b", ConfigFile: []byte(regionFile + role)}, "role_arn"},
		{"source without keys", Config{Bucket: "b", ConfigFile: []byte(regionFile + role + "source_profile = none\n")}, "source_profile"},
		{"CAs in a file", Config{Bucket: "b", Credentials: []byte(keysFile), ConfigFile: []byte(regionFile + "ca_bundle = /etc/passwd\n")}, "ca_bundle"},
		{"SSO", Config{Bucket: "b", ConfigFile: []byte(regionFile + "sso_start_url = https://x\nsso_region = eu-central-1\nsso_account_id = 1\nsso_role_name = x\n")}, "sso_start_url"},
		{"SSO session", Config{Bucket: "b", ConfigFile: []byte(regionFile + "sso_session = x\nsso_account_id = 1\nsso_role_name = x\n[sso-session x]\nsso_region = a\nsso_start_url = b\n")}, "sso_session"},
		{"login", Config{Bucket: "b", ConfigFile: []byte(regionFile + "login_session = x\n")}, "login_session"},
		{"endpoint with a password", Config{Bucket: "b", Credentials: []byte(keysFile), Endpoint: "https://user:hunter2@minio"}, "password"},
		{"endpoint with a query", Config{Bucket: "b", Credentials: []byte(keysFile), Endpoint: "https://minio?x=" + secretKey}, "path"},
		{"endpoint that is none", Config{Bucket: "b", Credentials: []byte(keysFile), Endpoint: "ftp://minio"}, "URL"},
		{"endpoint that can't be parsed", Config{Bucket: "b", Credentials: []byte(keysFile), Endpoint: "http://a b:" + secretKey}, "URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			isolate(t)
			_, err := Open(t.Context(), tt.config)
			if !errors.Is(err, store.ErrConfig) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one of the configuration that mentions %s", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), secretKey) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("the error holds the secret: %v", err)
			}
		})
	}
}

func TestRolesAreAssumedWithTheUsersKeys(t *testing.T) {
	isolate(t)
	opened, err := Open(t.Context(), Config{
		Bucket: "backups", Credentials: []byte(keysFile),
		ConfigFile: []byte(regionFile + "role_arn = arn:aws:iam::1:role/backup\nsource_profile = default\nexternal_id = 7\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if opened.client.Options().Credentials == nil {
		t.Error("no credentials")
	}
	if _, static := opened.client.Options().Credentials.(credentials.StaticCredentialsProvider); static {
		t.Error("the keys are used as they are")
	}
}

func TestAProcessWithoutCredentialsIsTold(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	opened, err := Open(t.Context(), Config{Bucket: "backups"})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	_, err = opened.Stat(t.Context(), "key")
	if !errors.Is(err, store.ErrNoCredentials) || errors.Is(err, store.ErrDenied) || !strings.Contains(err.Error(), "Secret") {
		t.Errorf("stat: %v", err)
	}
}

// The service that gives credentials is not the store: what it refuses may be allowed there.
func TestARoleThatIsRefusedIsNoDenialOfTheStore(t *testing.T) {
	refusal := func(service string, err error) error {
		return &smithy.OperationError{ServiceID: service, OperationName: "x", Err: err}
	}
	answer := &smithy.GenericAPIError{Code: "AccessDenied", Message: "no sts:AssumeRole"}
	ofRole := explain(refusal(s3.ServiceID, fmt.Errorf("get identity: %w", refusal(sts.ServiceID, answer))))
	if !errors.Is(ofRole, store.ErrNoCredentials) || errors.Is(ofRole, store.ErrDenied) {
		t.Errorf("of the role: %v", ofRole)
	}
	if ofStore := explain(refusal(s3.ServiceID, answer)); !errors.Is(ofStore, store.ErrDenied) || errors.Is(ofStore, store.ErrNoCredentials) {
		t.Errorf("of the store: %v", ofStore)
	}
}

func TestAdviceForAMissingRegionHelps(t *testing.T) {
	for name, tt := range map[string]struct {
		config Config
		helps  bool
	}{
		"own credentials": {Config{Bucket: "b"}, true},
		"keys":            {Config{Bucket: "b", Credentials: []byte(keysFile)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			isolate(t)
			_, err := Open(t.Context(), tt.config)
			if !errors.Is(err, store.ErrConfig) || strings.Contains(err.Error(), "AWS_REGION") != tt.helps {
				t.Fatalf("open: %v", err)
			}
			t.Setenv("AWS_REGION", "eu-central-1")
			if _, err := Open(t.Context(), tt.config); (err == nil) != tt.helps {
				t.Errorf("with AWS_REGION: %v", err)
			}
		})
	}
}
