// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
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
			t.Fatal("the server continues")
		}
	}
}

// As in a stage, a program asks that another one has started.
const asks = `
request='exec 3<>"/dev/tcp/${0%:*}/${0#*:}"; printf "GET /api HTTP/1.0\r\n\r\n" >&3; cat <&3 >/dev/null'
ask() { bash -c 'bash -c "$1" "$2"; true' stage "$request" "${ETCDCTL_ENDPOINTS#http://}"; }
tripwire_told || echo nothing
ask
tripwire_told
rm "$tripwire_dir/asked"
kill -KILL "$tripwire"
while kill -0 "$tripwire" 2>/dev/null; do :; done
tripwire_told
`

func TestAScriptIsToldWhatWasAsked(t *testing.T) {
	script, address, output := begin(t, t.TempDir(), asks)
	text, err := io.ReadAll(output)
	if err != nil {
		t.Fatal(err)
	}
	if err := script.Wait(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	// The program that connected soon starts cat, which has the connection as well.
	want := regexp.MustCompile(`^nothing
tripwire: .* was asked:
connection by (cat < )?bash -c exec .* < bash -c bash .*
GET /api \(\) by (cat < )?bash -c exec .* < bash -c bash .*
tripwire: the server has ended, .*
$`)
	if !want.Match(text) {
		t.Errorf("reported\n%s\nwant %s", text, want)
	}
	awaitEnd(t, address)
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
