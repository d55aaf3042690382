// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"
)

// small is a release for this machine alone, with one of the operators.
func small(t *testing.T) *release {
	t.Helper()
	r := &release{
		commit: strings.Repeat("0123456789", 4), ref: "refs/tags/v9.8.7-rc.1", time: then,
		operators: []string{"operator"}, archs: []string{runtime.GOARCH}, plugins: []platform{{"linux", runtime.GOARCH}},
	}
	r.source.Root, r.source.Version = filepath.Join("..", ".."), "v9.8.7-rc.1"
	if err := r.check(); err != nil {
		t.Fatal(err)
	}
	return r
}

// The programs are built once. All tests of the files share two releases that are made of them.
func TestRelease(t *testing.T) {
	r := small(t)
	programs, err := r.build(t.Context(), t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	var made [2]string
	for i := range made {
		made[i] = t.TempDir()
		if err := r.assemble(t.Context(), programs, t.TempDir(), made[i]); err != nil {
			t.Fatal(err)
		}
	}
	directory := made[0]
	if err := check(made[0], made[1], t.Output()); err != nil {
		t.Errorf("two runs: %v", err)
	}
	digest := testImage(t, directory)
	t.Run("files", func(t *testing.T) { testFiles(t, directory) })
	t.Run("manifests", func(t *testing.T) { testManifests(t, directory, digest) })
	t.Run("chart", func(t *testing.T) { testChart(t, directory) })
	t.Run("plugin", func(t *testing.T) { testPlugin(t, r, directory, programs) })
	t.Run("bill of materials", func(t *testing.T) { testSBOM(t, r, directory, programs) })
	t.Run("provenance", func(t *testing.T) { testProvenance(t, r, directory, digest) })
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func testFiles(t *testing.T, directory string) {
	want := []string{
		"etcd-operator-9.8.7-rc.1.tgz", "etcd-operator-v9.8.7-rc.1-image.tar", "etcd-operator-v9.8.7-rc.1.cdx.json", "etcd.yaml",
		"install-cluster-wide.yaml", "install.yaml", "kubectl-etcd_v9.8.7-rc.1_linux_" + runtime.GOARCH + ".tar.gz", "provenance.json",
	}
	var got []string
	for line := range strings.Lines(string(read(t, directory, sumsName))) {
		got = append(got, strings.Fields(line)[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// testImage reads the image as crane push does. It returns the digest by which a registry would
// know the image.
func testImage(t *testing.T, directory string) string {
	t.Helper()
	unpacked := t.TempDir()
	file := filepath.Join(directory, "etcd-operator-v9.8.7-rc.1-image.tar")
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", file, "-C", unpacked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	top, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := manifest.Manifests[0].Annotations["io.containerd.image.name"]; got != "docker.io/etcd-operator/etcd-operator:v9.8.7-rc.1" {
		t.Errorf("the archive names the image %s", got)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// A registry must know the image by the digest in the manifests.
func testManifests(t *testing.T, directory, digest string) {
	for _, file := range []string{"install.yaml", "install-cluster-wide.yaml"} {
		text := string(read(t, directory, file))
		want := "image: docker.io/etcd-operator/etcd-operator:v9.8.7-rc.1@" + digest + "\n"
		if got := strings.Count(text, want); got != 3 || strings.Count(text, "image: docker.io/") != got {
			t.Errorf("%s names %q %d times, want in all 3 Deployments", file, want, got)
		}
		if got := strings.Count(text, "operator-version: v9.8.7-rc.1\n"); got != 3 {
			t.Errorf("%s: %d CRDs state their version, want 3", file, got)
		}
	}
}

func testChart(t *testing.T, directory string) {
	found := map[string]string{}
	for _, file := range unpackTarGz(t, read(t, directory, "etcd-operator-9.8.7-rc.1.tgz")) {
		name, rest, _ := strings.Cut(file, " ")
		found[name] = rest
	}
	for _, line := range []string{"\nname: etcd-operator\n", "\nversion: 9.8.7-rc.1\n", "\nappVersion: v9.8.7-rc.1\n"} {
		if !strings.Contains(found["etcd-operator/Chart.yaml"], line) {
			t.Errorf("Chart.yaml lacks %q:\n%s", line, found["etcd-operator/Chart.yaml"])
		}
	}
	want := 0
	err := filepath.WalkDir("../../charts/etcd-operator", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want++
		if name := strings.TrimPrefix(path, "../../charts/"); found[name] == "" {
			t.Errorf("the chart lacks %s", name)
		}
		return nil
	})
	if err != nil || len(found) != want {
		t.Errorf("the archive has %d files, the source %d, error %v", len(found), want, err)
	}
}

func testPlugin(t *testing.T, r *release, directory string, programs []program) {
	archive := "kubectl-etcd_v9.8.7-rc.1_linux_" + runtime.GOARCH + ".tar.gz"
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(read(t, directory, "etcd.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	sum, err := sumOf(filepath.Join(directory, archive))
	if err != nil {
		t.Fatal(err)
	}
	want := krewPlatform{
		Selector: krewSelector{map[string]string{"os": "linux", "arch": runtime.GOARCH}}, SHA256: sum, Bin: "kubectl-etcd",
		URI: "https://github.com/etcd-operator/etcd-operator/releases/download/v9.8.7-rc.1/" + archive,
	}
	if got := manifest.Spec.Platforms; len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("krew's platforms: got %+v, want %+v", got, want)
	}
	if manifest.Metadata.Name != "etcd" || manifest.Spec.Version != "v9.8.7-rc.1" {
		t.Errorf("krew's manifest is of %s %s", manifest.Metadata.Name, manifest.Spec.Version)
	}
	unpacked := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", filepath.Join(directory, archive), "-C", unpacked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if files, err := os.ReadDir(unpacked); err != nil || len(files) != 2 {
		t.Errorf("the archive has %v, error %v, want LICENSE and the plugin", files, err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(unpacked, "kubectl-etcd"), "--version").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("v9.8.7-rc.1")) {
		t.Errorf("the plugin is of another version: %v\n%s", err, out)
	}
	operator := slices.IndexFunc(programs, func(p program) bool { return p.directory == "operator" })
	out, err = exec.CommandContext(t.Context(), programs[operator].file, "-version").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("v9.8.7-rc.1")) || !bytes.Contains(out, []byte(r.commit[:12])) {
		t.Errorf("the operator is of another version or commit: %v\n%s", err, out)
	}
}

func testSBOM(t *testing.T, r *release, directory string, programs []program) {
	var bom cdx.BOM
	text := read(t, directory, "etcd-operator-v9.8.7-rc.1.cdx.json")
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	components := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		if _, twice := components[c.BOMRef]; twice {
			t.Errorf("%s is there twice", c.BOMRef)
		}
		components[c.BOMRef] = c
	}
	dependencies := map[string][]string{}
	for _, d := range *bom.Dependencies {
		if d.Dependencies != nil {
			dependencies[d.Ref] = *d.Dependencies
		}
		for _, ref := range dependencies[d.Ref] {
			if _, ok := components[ref]; !ok {
				t.Errorf("%s depends on %s, which is no component", d.Ref, ref)
			}
		}
	}
	for _, p := range programs {
		ref := p.name() + "/" + p.platform.String()
		sum, err := sumOf(p.file)
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := components[ref]; !ok || (*c.Hashes)[0].Value != sum {
			t.Errorf("the component %s is not the program: %+v", ref, c)
		}
		if !slices.Contains(dependencies[productRef], ref) {
			t.Errorf("the release does not contain %s", ref)
		}
		info, err := buildinfo.ReadFile(p.file)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(dependencies[ref]), len(info.Deps)+1; got != want || want < 50 {
			t.Errorf("%s: %d modules, want those of the program and the standard library, %d", ref, got, want)
		}
		if want := "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go"); !slices.Contains(dependencies[ref], want) {
			t.Errorf("%s lacks %s", ref, want)
		}
	}
	if bom.Metadata.Component.Version != r.source.Version || bom.Metadata.Timestamp != "2026-11-22T10:00:01Z" {
		t.Errorf("the bill is of %s at %s", bom.Metadata.Component.Version, bom.Metadata.Timestamp)
	}
}

// The libraries of in-toto judge the statement and its predicate.
func testProvenance(t *testing.T, r *release, directory, digest string) {
	var s intoto.Statement
	if err := protojson.Unmarshal(read(t, directory, "provenance.json"), &s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(s.GetPredicate().AsMap())
	if err != nil {
		t.Fatal(err)
	}
	var p slsa.Provenance
	if err := protojson.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	source := p.GetBuildDefinition().GetResolvedDependencies()[0]
	if source.GetDigest()["gitCommit"] != r.commit || !strings.HasSuffix(source.GetUri(), "@refs/tags/v9.8.7-rc.1") {
		t.Errorf("the source is %v", source)
	}
	subjects := map[string]string{}
	for _, subject := range s.GetSubject() {
		subjects[subject.GetName()] = subject.GetDigest()["sha256"]
	}
	if got := subjects["docker.io/etcd-operator/etcd-operator:v9.8.7-rc.1"]; "sha256:"+got != digest {
		t.Errorf("the image has the digest %s, want %s", got, digest)
	}
	sums, err := readSums(directory)
	if err != nil {
		t.Fatal(err)
	}
	delete(sums, "provenance.json")
	for name, sum := range sums {
		if subjects[name] != sum {
			t.Errorf("%s: got %q, want %s", name, subjects[name], sum)
		}
	}
	if len(subjects) != len(sums)+1 {
		t.Errorf("%d subjects, want the image and %d files", len(subjects), len(sums))
	}
}

func TestAnIncompleteReleaseIsRefused(t *testing.T) {
	for says, change := range map[string]func(*release){
		"want something like v1.2.3":      func(r *release) { r.source.Version = "1.2.3" },
		"want the hash of a commit":       func(r *release) { r.commit = "main" },
		"the name of its commit":          func(r *release) { r.ref = "" },
		"want the source tree, ":          func(r *release) { r.source.Root = "" },
		"its commit, and the commit's ti": func(r *release) { r.time = r.time.AddDate(-100, 0, 0) },
	} {
		r := small(t)
		change(r)
		if err := r.check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error with %q", err, says)
		}
	}
}

// A failed run leaves nothing behind that looks like a release.
func TestAFailedRunLeavesNothing(t *testing.T) {
	r := small(t)
	r.source.Root = t.TempDir() // without programs
	dist := t.TempDir()
	if err := r.write(t.Context(), filepath.Join(dist, "v9.8.7"), t.Output()); err == nil || !strings.Contains(err.Error(), "build operator") {
		t.Errorf("got %v, want that the build fails", err)
	}
	if left, err := os.ReadDir(dist); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, error %v", left, err)
	}
	if err := r.write(t.Context(), dist, t.Output()); err == nil || !strings.Contains(err.Error(), "exists: remove it") {
		t.Errorf("got %v, want that an existing directory is refused", err)
	}
}
