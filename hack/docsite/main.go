// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command docsite makes the website of the documentation from README.md and doc/.
//
// A generator such as Hugo brings themes, and takes minutes to compile. This one turns pages into
// HTML with goldmark, and adds what a reader needs: navigation, search, and links that are checked.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	root := flag.String("root", ".", "the repository")
	out := flag.String("out", "", "where to write the site; the directory must not exist")
	serve := flag.String("serve", "", "also serve the site at this address, such as localhost:8000")
	flag.Parse()
	if err := run(*root, *out, *serve); err != nil {
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(1)
	}
}

func run(root, out, address string) error {
	site, err := build(os.DirFS(root))
	if err != nil {
		return err
	}
	if out != "" {
		if err := site.write(out); err != nil {
			return err
		}
		fmt.Printf("%d pages in %s\n", len(site.pages), out)
	}
	if address == "" {
		return nil
	}
	fmt.Printf("http://%s\n", address)
	server := &http.Server{Addr: address, Handler: site, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}
