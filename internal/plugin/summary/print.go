// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Style is how much of a summary is printed.
type Style struct {
	// Namespace adds the namespace to the name.
	Namespace bool
	// Wide adds columns to the table of members.
	Wide bool
}

// Print writes a summary for people.
func (s *Summary) Print(out io.Writer, now time.Time, style Style) error {
	var text strings.Builder
	if style.Namespace {
		text.WriteString(s.Namespace + "/")
	}
	text.WriteString(s.headline() + "\n")
	for _, reason := range s.Reasons {
		text.WriteString("  " + reason + "\n")
	}
	s.printMembers(&text, style.Wide)
	if s.Source == FromOperator {
		fmt.Fprintf(&text, "Members    as the operator last saw them: the members were not asked (%s)\n", s.NotAsked)
	}
	for _, a := range s.Activity {
		text.WriteString("Operator   " + a + "\n")
	}
	text.WriteString("Backups    " + s.backupLine(now) + "\n")
	if len(s.Certificates) > 0 {
		text.WriteString("Certs      " + s.certificateLine() + "\n")
	}
	for i, a := range s.Advice {
		label := "           "
		if i == 0 {
			label = "Advice     "
		}
		text.WriteString(label + a + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (s *Summary) headline() string {
	parts := []string{s.Name, orDash(s.version()), string(s.State)}
	if s.Voters > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d voters healthy", s.Healthy, s.Voters))
	}
	if s.Leader != "" {
		parts = append(parts, "leader "+s.Leader)
	}
	switch {
	case s.Voters == 0:
	case s.Tolerates < 0:
		parts = append(parts, "no quorum")
	default:
		parts = append(parts, fmt.Sprintf("quorum tolerates %s", losses(s.Tolerates)))
	}
	if s.Paused {
		parts = append(parts, "PAUSED")
	}
	return strings.Join(parts, "   ")
}

func (s *Summary) version() string {
	if s.Target != "" && s.Target != s.Version {
		return s.Version + " → " + s.Target
	}
	return s.Version
}

func losses(n int) string {
	switch n {
	case 0:
		return "no loss"
	case 1:
		return "1 loss"
	default:
		return fmt.Sprintf("%d losses", n)
	}
}

func (s *Summary) printMembers(out io.Writer, wide bool) {
	if len(s.Members) == 0 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	header := "MEMBER\tROLE\tVERSION\tDB\tIN USE\tLAG\tFSYNC p99\tNODE / ZONE"
	if wide {
		header += "\tQUOTA\tRESTARTS\tID"
	}
	fmt.Fprintln(table, header)
	for _, m := range s.Members {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", m.Name, m.role(), orDash(m.Version), m.db(), m.inUse(), m.lag(), m.fsync(), m.where())
		if wide {
			fmt.Fprintf(table, "\t%s\t%d\t%s", m.quota(), m.Restarts, orDash(m.ID))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}

func (m Member) quota() string {
	if m.DBQuota == 0 {
		return "-"
	}
	return Bytes(m.DBQuota)
}

func (m Member) role() string {
	if m.Healthy || m.Role == Silent || m.Role == NoMember {
		return string(m.Role)
	}
	return string(m.Role) + " !"
}

func (m Member) db() string {
	if m.Version == "" {
		return "-"
	}
	return Bytes(m.DBSize)
}

func (m Member) inUse() string {
	if m.DBSize == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", m.DBInUse*100/m.DBSize)
}

func (m Member) lag() string {
	if m.Version == "" {
		return "-"
	}
	return fmt.Sprint(m.Lag)
}

func (m Member) fsync() string {
	switch {
	case m.FsyncP99 == nil:
		return "-"
	case m.slowDisk:
		return Seconds(*m.FsyncP99) + " !"
	default:
		return Seconds(*m.FsyncP99)
	}
}

func (m Member) where() string {
	if m.Zone == "" {
		return orDash(m.Node)
	}
	return m.Node + " / " + m.Zone
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (s *Summary) backupLine(now time.Time) string {
	switch {
	case s.NoBackups != "":
		return "unknown: " + s.NoBackups
	case len(s.Backups) == 0:
		return "none"
	}
	var list []string
	for _, b := range s.Backups {
		list = append(list, b.line(now))
	}
	return strings.Join(list, " · ")
}

func (b Backup) line(now time.Time) string {
	if b.Taken == nil {
		return b.Name + ": none yet !"
	}
	text := fmt.Sprintf("%s: %s ago, revision %d", b.Name, Age(now.Sub(*b.Taken)), b.Revision)
	if b.Verified {
		text += ", verified"
	} else {
		text += ", uncertain !"
	}
	if b.Logged != nil {
		text += fmt.Sprintf(", log up to %s ago", Age(max(now.Sub(*b.Logged), 0)))
	}
	if b.Unlogged != "" {
		text += ", log stopped !"
	}
	if b.Restored != nil {
		text += fmt.Sprintf(", restored %s ago", Age(now.Sub(*b.Restored)))
	}
	if b.Unproved != "" {
		text += ", restore test failed !"
	}
	if b.Failing != "" {
		text += ", failing !"
	}
	return text
}

func (s *Summary) certificateLine() string {
	var list []string
	for _, c := range s.Certificates {
		switch {
		case c.Problem != "":
			list = append(list, c.Use+" ?")
		case c.Expired:
			list = append(list, c.Use+" EXPIRED !")
		case c.Expiring:
			list = append(list, fmt.Sprintf("%s %d d !", c.Use, c.days()))
		default:
			list = append(list, fmt.Sprintf("%s %d d", c.Use, c.days()))
		}
	}
	return strings.Join(list, ", ")
}
