// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// screen is what the program showed from a moment on.
type screen struct {
	at    time.Duration
	lines []string
}

// movie shows screens in turn, without end.
type movie struct {
	title   string
	screens []screen
	length  time.Duration
	note    string        // below the screens, from noteAt on
	noteAt  time.Duration // since the beginning
}

// Sizes in pixels. A character of the usual fonts of fixed width is 0.6 of their size wide;
// textLength enforces it for others.
const (
	fontSize   = 14
	charWidth  = 8.4
	lineHeight = 20
	margin     = 16
)

// svg draws the movie. Where nothing moves, by the wish of the reader, the last screen shows.
func (m movie) svg() string {
	columns, rows := utf8.RuneCountInString(m.title)+2, 0
	for _, s := range m.screens {
		rows = max(rows, len(s.lines))
		for _, line := range s.lines {
			columns = max(columns, utf8.RuneCountInString(line))
		}
	}
	columns = max(columns, utf8.RuneCountInString(m.note))
	width, height := int(float64(columns)*charWidth)+2*margin, (rows+3)*lineHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n", escaped(m.title))
	fmt.Fprintf(&b, "text { font: %dpx ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #e6edf3; white-space: pre }\n.dim { fill: #8b949e }\n.note { fill: #ff7b72 }\n", fontSize)
	b.WriteString("g { visibility: hidden }\n")
	for i, s := range m.screens {
		end := m.length
		if i+1 < len(m.screens) {
			end = m.screens[i+1].at
		}
		if i == 0 {
			s.at = 0
		}
		b.WriteString(m.rule(fmt.Sprintf("s%d", i), s.at, end))
	}
	b.WriteString(m.rule("note", m.noteAt, m.length))
	fmt.Fprintf(&b, "@media (prefers-reduced-motion: reduce) { g { animation: none !important } #s%d, #note { visibility: visible } }\n</style>\n", len(m.screens)-1)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#0d1117"/>`+"\n", width, height)
	b.WriteString(text(0, "dim", "$ "+m.title))
	for i, s := range m.screens {
		fmt.Fprintf(&b, `<g id="s%d">`+"\n", i)
		for n, line := range s.lines {
			if line != "" {
				b.WriteString(text(n+1, "", line))
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString(`<g id="note">` + "\n" + text(rows+2, "note", m.note) + "</g>\n</svg>\n")
	return b.String()
}

// rule makes an element visible in a part of the movie.
func (m movie) rule(id string, from, to time.Duration) string {
	share := func(d time.Duration) float64 { return 100 * float64(d) / float64(m.length) }
	return fmt.Sprintf("@keyframes %s { 0%% { visibility: hidden } %.2f%% { visibility: visible } %.2f%% { visibility: hidden } 100%% { visibility: hidden } }\n#%s { animation: %s %.1fs steps(1, end) infinite }\n",
		id, max(share(from), 0.01), min(share(to), 99.99), id, id, m.length.Seconds())
}

func text(row int, class, line string) string {
	if class != "" {
		class = fmt.Sprintf(` class=%q`, class)
	}
	return fmt.Sprintf(`<text x="%d" y="%d"%s textLength="%.1f" xml:space="preserve">%s</text>`+"\n",
		margin, margin+(row+1)*lineHeight-6, class, float64(utf8.RuneCountInString(line))*charWidth, escaped(line))
}

func escaped(line string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(line)) // a Builder takes everything
	return b.String()
}
