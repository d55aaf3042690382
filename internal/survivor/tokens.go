// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"crypto/rand"
	"sync"
	"time"
)

// tokenTime is how long a token without use is valid, as etcd's simple tokens.
const tokenTime = 5 * time.Minute

// tokens are those that the server has issued. They end with it. Their number is bounded, because
// each costs the comparison of a password.
type tokens struct {
	mu   sync.Mutex // guards held
	held map[string]*token
}

type token struct {
	user string
	used time.Time
}

func newTokens() *tokens { return &tokens{held: map[string]*token{}} }

// issue returns a new token of a user.
func (t *tokens) issue(user string) string {
	text, now := rand.Text(), time.Now() // 128 bits or more
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, held := range t.held {
		if now.Sub(held.used) > tokenTime {
			delete(t.held, other)
		}
	}
	t.held[text] = &token{user: user, used: now}
	return text
}

// user returns whose token it is. known is false if it is of no user any more.
func (t *tokens) user(text string) (name string, known bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held[text]
	if held == nil || now.Sub(held.used) > tokenTime {
		return "", false
	}
	held.used = now
	return held.user, true
}
