// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// productRef is how the bill of materials refers to the whole release.
const productRef = "etcd-operator"

// writeSBOM writes the bill of materials, in the format of CycloneDX: which modules each program
// contains. Its source is the programs, in which the compiler lists the modules.
func (r *release) writeSBOM(programs []program, directory string) error {
	bom := cdx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(project+"@"+r.source.Version+"+"+r.commit)).URN()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format(time.RFC3339), // not that of the run, which differs
		Component: &cdx.Component{
			BOMRef: productRef, Type: cdx.ComponentTypeApplication, Name: "etcd-operator", Version: r.source.Version,
			PackageURL: "pkg:golang/" + strings.TrimPrefix(project, "https://") + "@" + r.source.Version,
			Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	var components []cdx.Component
	modules := map[string]cdx.Component{}
	all := cdx.Dependency{Ref: productRef, Dependencies: &[]string{}}
	var dependencies []cdx.Dependency
	for _, p := range programs {
		component, found, err := r.inspect(p)
		if err != nil {
			return err
		}
		components = append(components, component)
		*all.Dependencies = append(*all.Dependencies, component.BOMRef)
		var refs []string
		for _, m := range found {
			modules[m.BOMRef] = m
			refs = append(refs, m.BOMRef)
		}
		slices.Sort(refs)
		dependencies = append(dependencies, cdx.Dependency{Ref: component.BOMRef, Dependencies: &refs})
	}
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		components = append(components, modules[ref])
		// Programs do not contain which module needs which.
		dependencies = append(dependencies, cdx.Dependency{Ref: ref})
	}
	dependencies = append([]cdx.Dependency{all}, dependencies...)
	bom.Components, bom.Dependencies = &components, &dependencies
	name := "etcd-operator-" + r.source.Version + ".cdx.json"
	return writeFile(filepath.Join(directory, name), func(w *bytes.Buffer) error {
		// Most scanners read 1.6.
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

// inspect returns the component of a program, and those of the modules in it.
func (r *release) inspect(p program) (cdx.Component, []cdx.Component, error) {
	info, err := buildinfo.ReadFile(p.file)
	if err != nil {
		return cdx.Component{}, nil, fmt.Errorf("read which modules %s contains: %w", p.file, err)
	}
	sum, err := sumOf(p.file)
	if err != nil {
		return cdx.Component{}, nil, err
	}
	component := cdx.Component{
		BOMRef: p.name() + "/" + p.platform.String(), Type: cdx.ComponentTypeApplication, Name: p.name(), Version: r.source.Version,
		PackageURL: fmt.Sprintf("pkg:golang/%s@%s?goarch=%s&goos=%s#cmd/%s", info.Main.Path, r.source.Version, p.platform.arch, p.platform.os, p.directory),
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
	}
	modules := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, library(m.Path, m.Version, m.Sum))
	}
	return component, modules, nil
}

// library returns the component of a module. Its hash is the one of go.sum, which is over the
// hashes of the module's files.
func library(path, version, sum string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + version
	component := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
	if sum != "" {
		component.Properties = &[]cdx.Property{{Name: "go.sum", Value: sum}}
	}
	return component
}
