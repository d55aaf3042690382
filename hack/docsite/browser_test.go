//go:build browser

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// found is what testdata/look.html reports.
type found struct {
	Looks int      `json:"looks"`
	Links int      `json:"links"`
	Wrong []string `json:"wrong"`
}

// look lets a browser open pages of the site at the width of a desktop and of a phone.
func look(t *testing.T, s *site, pages ...string) found {
	t.Helper()
	results := make(chan found, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /look.html", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/look.html") })
	mux.HandleFunc("POST /found", func(_ http.ResponseWriter, r *http.Request) {
		var f found
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			f.Wrong = append(f.Wrong, err.Error())
		}
		results <- f
	})
	mux.Handle("/", s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Who stops the tests signals their process group. The browser has one of its own.
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(stopped)
	// On a busy machine, all pages take minutes. A browser that hangs asks for nothing.
	const longestPause = 2 * time.Minute
	hangs := time.AfterFunc(longestPause, cancel)
	defer hangs.Stop()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hangs.Reset(longestPause)
		mux.ServeHTTP(w, r)
	}))
	defer server.Close()
	list, err := json.Marshal(pages)
	must(t, err)

	// A browser that is killed leaves files. It has a socket there, whose path may not be long.
	home, err := os.MkdirTemp("", "site") //nolint:usetesting // t.TempDir contains the test's name
	must(t, err)
	defer os.RemoveAll(home)
	browser := exec.CommandContext(ctx, "chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+home+"/profile", "--remote-debugging-port=0", server.URL+"/look.html#"+url.PathEscape(string(list)))
	browser.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "TMPDIR="+home)
	// The browser is a group of processes, which end together.
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	browser.Cancel = func() error { return syscall.Kill(-browser.Process.Pid, syscall.SIGKILL) }
	browser.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	browser.Stdout, browser.Stderr = &output, &output
	must(t, browser.Start())
	ended := make(chan error, 1)
	go func() { ended <- browser.Wait() }()
	select {
	case f := <-results:
		cancel()
		<-ended
		return f
	case err := <-ended:
		t.Fatalf("the browser ended without a result: %v\n%s", err, output.String())
	case s := <-stopped:
		cancel()
		<-ended
		must(t, os.RemoveAll(home))
		signal.Reset()
		must(t, syscall.Kill(os.Getpid(), s.(syscall.Signal)))
		select {} // until the signal has ended the tests
	}
	return found{}
}

// reported makes the site report errors of its scripts to the page that looks at it.
func reported(s *site) *site {
	for _, p := range s.pages {
		s.files[p.Path] = bytes.Replace(s.files[p.Path], []byte("<head>"),
			[]byte(`<head><script>addEventListener("error", (e) => parent.postMessage(location.pathname + ": " + e.message));</script>`), 1)
	}
	return s
}

func TestPagesInABrowser(t *testing.T) {
	s, err := build(repository())
	must(t, err)
	var pages []string
	for _, p := range s.pages {
		pages = append(pages, p.Path)
	}
	f := look(t, reported(s), pages...)
	for _, wrong := range f.Wrong {
		t.Error(wrong)
	}
	if f.Looks != 2*len(pages) || f.Links < 5*len(pages) {
		t.Errorf("%d pages, but %d looks and %d links", len(pages), f.Looks, f.Links)
	}
	t.Logf("%d looks, %d links", f.Looks, f.Links)
}

// A look finds what it looks for.
func TestABrowserFindsABrokenSite(t *testing.T) {
	tests := []struct {
		name, want string
		damage     func(s *site)
	}{
		{"a wide page", "pixels wide", func(s *site) {
			s.files["site.css"] = bytes.Replace(s.files["site.css"], []byte(".table { overflow-x: auto; }"), nil, 1)
		}},
		{"a dead link", "/never.html is dead", func(s *site) {
			s.files["index.html"] = bytes.Replace(s.files["index.html"], []byte("<main>"), []byte(`<main><a href="/never.html">x</a>`), 1)
		}},
		{"a dead anchor", "has no #never", func(s *site) {
			s.files["index.html"] = bytes.Replace(s.files["index.html"], []byte("<main>"), []byte(`<main><a href="/doc/tls.html#never">x</a>`), 1)
		}},
		{"a script that fails", "is not defined", func(s *site) {
			s.files["site.js"] = append([]byte("never();\n"), s.files["site.js"]...)
		}},
		{"no navigation on a phone", "the list of pages is open", func(s *site) {
			s.files["site.js"] = bytes.Replace(s.files["site.js"], []byte("unfold();"), nil, 1)
		}},
		{"a search that finds other pages", "finds", func(s *site) {
			s.files["search.json"] = bytes.ReplaceAll(s.files["search.json"], []byte("doc/alerts.html"), []byte("doc/tls.html"))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := build(repository())
			must(t, err)
			tt.damage(s)
			f := look(t, reported(s), "index.html", "doc/reference.html")
			if !strings.Contains(strings.Join(f.Wrong, "\n"), tt.want) {
				t.Errorf("nobody noticed: %q", f.Wrong)
			}
		})
	}
}

// Whoever stops the tests while a browser runs finds no browser afterwards, and no file of it.
func TestNoBrowserStaysIfTheTestsAreStopped(t *testing.T) {
	temp, err := os.MkdirTemp("", "stop") //nolint:usetesting // t.TempDir contains the test's name
	must(t, err)
	defer os.RemoveAll(temp)
	tests := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestPagesInABrowser$")
	tests.Env = append(os.Environ(), "TMPDIR="+temp)
	must(t, tests.Start())
	ended := make(chan error, 1)
	go func() { ended <- tests.Wait() }()
	browsers := func() (n int) {
		commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
		must(t, err)
		for _, name := range commands {
			if command, err := os.ReadFile(name); err == nil && bytes.Contains(command, []byte("--user-data-dir="+temp)) {
				n++
			}
		}
		return n
	}
	for browsers() < 2 { // the second one is started by the first, a script
		select {
		case err := <-ended:
			t.Fatalf("the tests ended before a browser ran: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	must(t, tests.Process.Signal(syscall.SIGTERM))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the tests ended so: %v", err)
	}
	left, err := os.ReadDir(temp)
	must(t, err)
	if n := browsers(); n > 0 || len(left) > 0 {
		t.Errorf("%d processes of the browser and %d directories are left", n, len(left))
	}
}
