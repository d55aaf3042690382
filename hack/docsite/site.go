// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed frame
var frame embed.FS

var layout = template.Must(template.ParseFS(frame, "frame/page.html"))

// site is the website: all its files.
type site struct {
	repository fs.FS
	pages      []*page
	bySource   map[string]*page
	groups     []group
	files      map[string][]byte // by path on the site
}

// build makes the site of a repository. It fails for a page that the navigation lacks, and for a
// link that leads nowhere.
func build(repository fs.FS) (*site, error) {
	s := &site{repository: repository, bySource: map[string]*page{}, files: map[string][]byte{}}
	names, err := pagesOf(repository)
	if err != nil {
		return nil, err
	}
	if err := missingPages(names); err != nil {
		return nil, err
	}
	for _, part := range navigation {
		g := group{Title: part.title}
		for _, name := range part.paths {
			content, err := fs.ReadFile(repository, name)
			if err != nil {
				return nil, err
			}
			p, err := parsePage(name, content)
			if err != nil {
				return nil, err
			}
			s.pages = append(s.pages, p)
			s.bySource[name] = p
			g.Pages = append(g.Pages, p)
		}
		s.groups = append(s.groups, g)
	}
	for _, p := range s.pages {
		if err := s.add(p); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"site.css", "site.js"} {
		if s.files[name], err = frame.ReadFile("frame/" + name); err != nil {
			return nil, err
		}
	}
	var sections []section
	for _, p := range s.pages {
		sections = append(sections, p.sections...)
	}
	s.files["search.json"], err = json.Marshal(sections)
	return s, err
}

// add makes the file of a page, and adds the pictures that it shows.
func (s *site) add(p *page) error {
	pictures, err := s.resolve(p)
	if err != nil {
		return err
	}
	for _, picture := range pictures {
		if s.files[picture], err = fs.ReadFile(s.repository, picture); err != nil {
			return err
		}
	}
	if err := p.render(); err != nil {
		return err
	}
	var b bytes.Buffer
	err = layout.Execute(&b, struct {
		*page
		Groups []group
		Root   string
		Edit   string
		Link   func(to string) string
	}{p, s.groups, strings.Repeat("../", strings.Count(p.Path, "/")), source + p.Source, func(to string) string { return relative(p.Path, to) }})
	if err != nil {
		return fmt.Errorf("%s: %w", p.Source, err)
	}
	s.files[p.Path] = b.Bytes()
	return nil
}

// write makes the directory with all files of the site.
func (s *site) write(directory string) error {
	if err := os.Mkdir(directory, 0o755); err != nil {
		return err
	}
	for name, content := range s.files {
		file := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP serves the files of the site.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	content, ok := s.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	_, _ = w.Write(content)
}
