// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// krewPlugin is a manifest of krew, as https://krew.sigs.k8s.io/docs/developer-guide/ states it.
type krewPlugin struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   krewMetadata `json:"metadata"`
	Spec       krewSpec     `json:"spec"`
}

type krewMetadata struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// krewName is the name of the plugin in krew, and the manifest's name without its suffix.
const krewName = "etcd"

const krewDescription = `Shows the state of EtcdClusters (etcd.database.coreos.com), diagnoses and operates them:
status, doctor, ctl, members, logs, backup, restore, upgrade and more. It connects to
the API server alone, so it needs no network to the members.
`

// downloads is where the files of a release are after its publication.
func (r *release) downloads() string { return project + "/releases/download/" + r.source.Version + "/" }

// writeKrew writes the manifest with which krew installs the plugin.
func (r *release) writeKrew(archives []pluginArchive, directory string) error {
	manifest := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMetadata{krewName},
		Spec: krewSpec{
			Version: r.source.Version, Homepage: project,
			ShortDescription: "Inspect and operate etcd clusters", Description: krewDescription,
		},
	}
	for _, a := range archives {
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": a.platform.os, "arch": a.platform.arch}},
			URI:      r.downloads() + a.name, SHA256: a.sha256, Bin: a.program,
		})
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, krewName+".yaml"), text, 0o644)
}
