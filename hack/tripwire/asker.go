// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// ancestors is the number of named processes.
	ancestors = 6
	// commandLength bounds the shown part of each command line.
	commandLength = 120
)

// asker names the process at the other end of a connection, which is on this machine,
// and the processes that have started it.
func asker(connection net.Conn) string {
	inode := socketOf(connection.RemoteAddr().(*net.TCPAddr).Port, connection.LocalAddr().(*net.TCPAddr).Port)
	pid := holderOf(inode)
	if inode == "" || pid == "" {
		return "a process that has ended or cannot be seen"
	}
	var chain []string
	for top := fmt.Sprint(os.Getppid()); pid != "" && pid != "0" && pid != "1" && pid != top && len(chain) < ancestors; pid = parentOf(pid) {
		chain = append(chain, commandOf(pid))
	}
	return strings.Join(chain, " < ")
}

// socketOf returns the inode of the socket with these ports; see proc_net_tcp(5). Its
// address is that of IPv4, or the same within IPv6.
func socketOf(local, remote int) string {
	wanted := regexp.MustCompile(fmt.Sprintf(`(?m)^ *[0-9]+: [0-9A-F]+:%04X [0-9A-F]+:%04X( +\S+){6} +([0-9]+)`, local, remote))
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // a machine without IPv6
		}
		if match := wanted.FindSubmatch(text); match != nil {
			return string(match[2])
		}
	}
	return ""
}

// holderOf returns the ID of a process that has the socket open.
func holderOf(inode string) string {
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == "socket:["+inode+"]" {
			return strings.Split(file, "/")[2]
		}
	}
	return ""
}

var parent = regexp.MustCompile(`(?m)^PPid:\s+([0-9]+)$`)

func parentOf(pid string) string {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return ""
	}
	match := parent.FindSubmatch(status)
	if match == nil {
		return ""
	}
	return string(match[1])
}

// commandOf returns the command line of a process, on one line.
func commandOf(pid string) string {
	text, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil {
		return "?"
	}
	words := strings.Fields(string(bytes.ReplaceAll(text, []byte{0}, []byte(" "))))
	command := strings.Join(words, " ")
	if len(command) > commandLength {
		command = strings.ToValidUTF8(command[:commandLength], "") + "..."
	}
	return command
}
