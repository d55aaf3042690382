// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// maxWords is the length of a sentence that a reader takes in at once.
const maxWords = 25

// finding is a passage that breaks a rule.
type finding struct {
	line    int
	message string
}

// phrase is wording to avoid, and what to write instead.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

func avoid(pattern, instead string) phrase {
	return phrase{regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`), instead}
}

var phrases = []phrase{
	avoid(`tells?|told|telling`, "report, state, show or explain"),
	avoid(`be had|have been had`, "unavailable"),
	avoid(`(?:makes?|made|make|making|written|begun) (?:\w+ ){0,2}anew|anew`, "recreate, or again"),
	avoid(`made again`, "recreated"),
	avoid(`for ever`, "forever"),
	avoid(`(?:leaves?|left|leaving) (?:\w+ ){0,3}away`, "omit"),
	avoid(`stands? in`, "is in, or contains"),
	avoid(`stands? by|stood by`, "is a standby"),
	avoid(`stands? still`, "stall, or stop"),
	avoid(`(?:takes?|taking|taken|took) care of`, "manage"),
	avoid(`puts? (?:\w+ )?right`, "correct"),
	avoid(`(?:is|are|was|were) of one mind`, "agree"),
	avoid(`to who`, "to the client, operator or person that"),
	avoid(`mends?|mended`, "fix"),
	avoid(`(?:goes|go|went|gone) on(?: with)?`, "continue, or happen"),
	avoid(`for want of`, "without"),
	avoid(`doth|whence|thence|whither|thereof|therein|herein`, "a common word"),
	avoid(`please`, "nothing: omit it"),
	avoid(`simply|easily|obviously`, "nothing: omit it"),
	avoid(`utili[sz]e[sd]?`, "use"),
	avoid(`in order to`, "to"),
	avoid(`e\.g|i\.e`, "for example, or that is"),
}

// participles are of verbs with an actor that a sentence has to name. Those that also
// describe a state, such as "lost" or "allowed", are left out.
var participles = strings.Join(strings.Fields(`
	added answered applied asked backed begun carried changed checked chosen compared copied
	counted created deleted discarded done dropped edited evicted expanded fetched followed
	found given handled ignored kept killed lifted listed looked made marked measured
	moved noted noticed offered printed promoted put raised read recorded recreated refused
	rejected removed repeated replaced reported restarted retried said scraped seen sent
	served shown skipped stopped swept taken tolerated touched tried updated upgraded
	verified waited written`), "|")

var (
	be      = `\b(?:is|are|was|were|be|been|being)\s+(?:(?:not|never|also|only|still|then|again|always|already|now|later|first|all|both|\w+ly)\s+){0,2}`
	passive = regexp.MustCompile(`(?i)` + be + `(?:(?:` + participles + `)\b|(?:\w+ed|known|drawn|driven|held|led|sent|bound|built)\s+by\b)`)

	// inverted is a statement whose subject is a clause: "What is lost can't come back."
	inverted = regexp.MustCompile(`^(?:What|Whoever|Whatever|Who|Whose)\s.*\.$`)

	// A sentence ends where another one begins. Only etcd begins one in lower case.
	ending = regexp.MustCompile(`[.!?][)"'’”*_]*\s+(?:["'(\[“*_]*(?:\p{Lu}|\d|\x60)|etcd)`)
)

// check returns the findings in a passage.
func check(p passage) []finding {
	var findings []finding
	add := func(format string, args ...any) {
		findings = append(findings, finding{p.line, fmt.Sprintf(format, args...)})
	}
	if p.wrapped {
		add("a paragraph is one line; its lines do not wrap: %s", shorten(p.text))
	}
	for _, sentence := range split(p.text) {
		if n := words(sentence); n > maxWords {
			add("a sentence of %d words; at most %d: %s", n, maxWords, shorten(sentence))
		}
		// Links lead to headings, and a short one seldom has room for the actor.
		if match := passive.FindString(sentence); match != "" && !p.heading {
			add("passive voice, %q; name the actor: %s", match, shorten(sentence))
		}
		if inverted.MatchString(sentence) {
			add("a clause as the subject; begin with a noun: %s", shorten(sentence))
		}
		for _, phrase := range phrases {
			if match := phrase.pattern.FindString(sentence); match != "" {
				add("instead of %q, write: %s: %s", match, phrase.instead, shorten(sentence))
			}
		}
	}
	return findings
}

// split returns the sentences of a text.
func split(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var sentences []string
	for {
		at := ending.FindStringIndex(text)
		if at == nil {
			break
		}
		end := at[0] + strings.IndexByte(text[at[0]:], ' ')
		sentences = append(sentences, text[:end])
		text = text[end+1:]
	}
	if text != "" {
		sentences = append(sentences, text)
	}
	return sentences
}

// words counts what a reader reads: a span of code is one word, a dash is none.
func words(sentence string) int {
	count := 0
	for field := range strings.FieldsSeq(sentence) {
		if strings.Contains(field, code) || strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			count++
		}
	}
	return count
}

// shorten returns the beginning of a sentence, to find it by.
func shorten(sentence string) string {
	const length = 80
	if runes := []rune(sentence); len(runes) > length {
		return string(runes[:length]) + "…"
	}
	return sentence
}
