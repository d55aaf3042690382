// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// begin runs commands as hack/test would, after set_tripwire. It returns the address of
// the server, and what the commands print.
func begin(t *testing.T, dir, commands string) (script *exec.Cmd, address string, output *bufio.Reader) {
	t.Helper()
	script = exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", `
cd ../..
source hack/process.sh
source hack/tripwire.sh
trap end_tripwire EXIT
set_tripwire "$1"
echo "${ETCDCTL_ENDPOINTS#http://}"
`+commands, "script", dir)
	script.Stderr = os.Stderr
	if _, err := script.StdinPipe(); err != nil { // stays open until the end
		t.Fatal(err)
	}
	out, err := script.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	output = bufio.NewReader(out)
	address, err = output.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return script, strings.TrimSpace(address), output
}

// awaitEnd waits until the server has ended.
func awaitEnd(t *testing.T, address string) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return
		}
		connection.Close()
		if time.Since(begin) > time.Minute {
			t.Fatal("the server goes on")
		}
	}
}

func TestAScriptIsToldWhatWasAsked(t *testing.T) {
	for name, tt := range map[string]struct{ commands, want string }{
		"nothing":         {`true`, "nothing\n"},
		"something":       {`exec 3<>"/dev/tcp/127.0.0.1/${1##*:}"; printf 'GET /api HTTP/1.0\r\n\r\n' >&3; cat <&3 >/dev/null; exec 3>&-`, "GET /api () by bash -c"},
		"the server dies": {`kill -KILL "$tripwire"; while kill -0 "$tripwire" 2>/dev/null; do :; done`, "the server has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			commands := "ask() { " + tt.commands + "; }\n"
			if name == "something" { // as a stage does: in a process of its own
				commands = "ask() { bash -c '" + strings.ReplaceAll(tt.commands, "'", `'\''`) + `' ask "$ETCDCTL_ENDPOINTS"; }` + "\n"
			}
			script, address, output := begin(t, dir, commands+"ask\ntripwire_told || echo nothing")
			text, err := io.ReadAll(output)
			if err != nil {
				t.Fatal(err)
			}
			if err := script.Wait(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if !strings.Contains(string(text), tt.want) {
				t.Errorf("told %q, want %q", text, tt.want)
			}
			awaitEnd(t, address)
		})
	}
}

func TestTheServerEndsWithAScriptThatIsKilled(t *testing.T) {
	script, address, output := begin(t, t.TempDir(), "echo ready; read -r")
	if line, err := output.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatal(line, err)
	}
	if err := script.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = script.Wait() // it was killed
	awaitEnd(t, address)
}
