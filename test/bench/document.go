// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"strings"
)

// A part is the section of the document, between two lines, that a run writes. People write
// the rest.
type part struct{ begin, end string }

// The parts of the document.
var (
	clusterTimes = part{"<!-- measured: begin (written by hack/bench -write) -->", "<!-- measured: end -->"}
	atOnce       = part{"<!-- measured at once: begin (written by hack/bench -at-once -write) -->", "<!-- measured at once: end -->"}
	cachedTimes  = part{"<!-- measured addon: begin (written by hack/bench -dns addon -write) -->", "<!-- measured addon: end -->"}
	restores     = part{"<!-- measured restores: begin (written by hack/bench -restores -write) -->", "<!-- measured restores: end -->"}
	manyClusters = part{"<!-- measured scale: begin (written by hack/bench -scale -write) -->", "<!-- measured scale: end -->"}
	logs         = part{"<!-- measured logs: begin (written by hack/bench -logs -write) -->", "<!-- measured logs: end -->"}
	logRestores  = part{"<!-- measured log restores: begin (written by hack/bench -log-restores -write) -->", "<!-- measured log restores: end -->"}
	backups      = part{"<!-- measured backups: begin (written by hack/bench -backups -write) -->", "<!-- measured backups: end -->"}
)

// timesOf returns the part for clusters on a Kubernetes with a kind of DNS.
func timesOf(dns string) (part, error) {
	switch dns {
	case "fast":
		return clusterTimes, nil
	case "addon":
		return cachedTimes, nil
	default:
		return part{}, fmt.Errorf("the document has no part for the DNS %q: -write goes with fast and addon", dns)
	}
}

// write replaces a part of a document.
func write(path string, p part, measured string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	document, err := p.replace(string(text), measured)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(document), 0o644)
}

func (p part) replace(document, measured string) (string, error) {
	before, rest, ok := strings.Cut(document, p.begin)
	_, after, ok2 := strings.Cut(rest, p.end)
	if !ok || !ok2 {
		return "", fmt.Errorf("the lines %q and %q must be in the document, in this order", p.begin, p.end)
	}
	return before + p.begin + "\n\n" + strings.TrimSpace(measured) + "\n\n" + p.end + after, nil
}
