// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package network sets up links, addresses and routes, with the machine's ip
// command, in whatever network namespace it is called in.
package network

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// bridge joins the nodes.
const bridge = "nodes"

// uplink is the cluster's end of the link to the host.
const uplink = "host"

// A connection of a killed process keeps its network namespace, and so the link to the host,
// until it times out: by default, minutes later. These settings make it time out at once.
// Connections of live processes resume soon after a link returns.
const (
	orphanRetries = "1"
	rtoMaxMillis  = "1000" // since Linux 6.15
)

// AttachHost links the network namespace of a process to the host's and routes
// the instance's range there. The link goes when the namespace does.
func AttachHost(ctx context.Context, i instance.Instance, pid int) error {
	link := i.HostLink()
	cmds := []string{fmt.Sprintf("link add %s type veth peer name %s netns %d", link, uplink, pid)}
	for _, i := range i.Stacks() {
		cmds = append(cmds, fmt.Sprintf("addr add %s dev %s%s", i.OnUplink(i.HostIP()), link, atOnce(i)))
	}
	cmds = append(cmds, fmt.Sprintf("link set %s up", link))
	for _, i := range i.Stacks() {
		cmds = append(cmds, fmt.Sprintf("route add %s via %s dev %s onlink", i.Network, i.UplinkIP(), link))
	}
	return run(ctx, cmds...)
}

// DetachHost removes the host's end of the link, if it is there.
func DetachHost(ctx context.Context, i instance.Instance) error {
	return detach(ctx, i.HostLink())
}

// CheckFree fails if the host already has a route into the instance's range,
// other than a default route.
func CheckFree(ctx context.Context, i instance.Instance) error {
	for _, i := range i.Stacks() {
		if err := checkFree(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func checkFree(ctx context.Context, i instance.Instance) error {
	family := "-4"
	if i.IPv6() {
		family = "-6"
	}
	out, err := exec.CommandContext(ctx, "ip", family, "-json", "route", "show", "table", "all").Output()
	if err != nil {
		return fmt.Errorf("list the host's routes: %w", err)
	}
	taken, err := overlapping(out, i.Network)
	if err != nil {
		return err
	}
	if taken != "" {
		return fmt.Errorf("the host has a route to %s, which overlaps %s: choose another range with LOCALKUBE_NETWORK", taken, i.Network)
	}
	return nil
}

func overlapping(routes []byte, want netip.Prefix) (string, error) {
	var list []struct {
		Dst string `json:"dst"`
	}
	if err := json.Unmarshal(routes, &list); err != nil {
		return "", fmt.Errorf("read the host's routes: %w", err)
	}
	for _, r := range list {
		dst := r.Dst
		if dst == "default" {
			continue
		}
		if one, err := netip.ParseAddr(dst); err == nil {
			dst = netip.PrefixFrom(one, one.BitLen()).String()
		}
		p, err := netip.ParsePrefix(dst)
		if err != nil || p.Bits() == 0 {
			continue
		}
		if p.Overlaps(want) {
			return r.Dst, nil
		}
	}
	return "", nil
}

// SetUpCluster prepares the network between the host and the nodes, from
// inside the cluster's namespace.
func SetUpCluster(ctx context.Context, c instance.Config) error {
	if err := sysctl(map[string]string{
		"net/ipv4/tcp_orphan_retries":        orphanRetries,
		"net/ipv4/tcp_rto_max_ms":            rtoMaxMillis,
		"net/ipv4/ip_forward":                "1",
		"net/ipv4/conf/all/send_redirects":   "0",
		"net/ipv4/conf/all/rp_filter":        "0",
		"net/ipv4/conf/default/rp_filter":    "0",
		"net/ipv6/conf/all/forwarding":       "1",
		"net/bridge/bridge-nf-call-iptables": "0",
	}); err != nil {
		return err
	}
	cmds := []string{
		"link set lo up",
		// Without an address of its own, a bridge takes the address of one of its links, and
		// another one when that link goes. Every node would then lose the API server for half
		// a minute when one node is killed.
		fmt.Sprintf("link add %s address %s type bridge", bridge, mac(c.Bridge())),
	}
	for _, i := range c.Stacks() {
		cmds = append(cmds,
			fmt.Sprintf("addr add %s dev %s%s", i.BridgeOnLink(), bridge, atOnce(i)),
			fmt.Sprintf("addr add %s dev %s%s", i.OnUplink(i.UplinkIP()), uplink, atOnce(i)),
		)
	}
	cmds = append(cmds, "link set "+bridge+" up", "link set "+uplink+" up")
	for _, i := range c.Stacks() {
		cmds = append(cmds, "route add default via "+i.HostIP().String())
		for n := 1; n <= c.Nodes; n++ {
			cmds = append(cmds, fmt.Sprintf("route add %s via %s dev %s", i.PodCIDR(n), i.NodeIP(n), bridge))
		}
	}
	return run(ctx, cmds...)
}

// AttachNode links the network namespace of a node's first process to the bridge. It runs in
// the cluster's namespace.
//
// A restarted node keeps its link address, so that its neighbours' caches stay valid.
func AttachNode(ctx context.Context, c instance.Config, node string, pid int) error {
	number, _ := instance.NodeNumber(node)
	// A node that has just lost its power may have left its link: a connection that gives
	// up late keeps the network namespace of the processes that were killed.
	if err := detach(ctx, node); err != nil {
		return err
	}
	return run(ctx,
		fmt.Sprintf("link add %s type veth peer name eth0 address %s netns %d", node, mac(c.NodeIP(number)), pid),
		fmt.Sprintf("link set %s master %s up", node, bridge),
	)
}

// detach removes a link from the current network namespace, if it is there. It may go by
// itself meanwhile, with the namespace of its other end.
func detach(ctx context.Context, link string) error {
	if !attached(link) {
		return nil
	}
	if err := run(ctx, "link del "+link); err != nil && attached(link) {
		return err
	}
	return nil
}

// attached reports whether a link exists in the current network namespace.
func attached(link string) bool {
	_, err := net.InterfaceByName(link)
	return err == nil
}

// SetLink takes a node's link down or up, at the bridge.
func SetLink(ctx context.Context, node string, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return run(ctx, "link set "+node+" "+state)
}

// SetUpNode prepares a node's network from inside its namespace.
func SetUpNode(ctx context.Context, c instance.Config, number int) error {
	if err := sysctl(map[string]string{
		"net/ipv4/tcp_orphan_retries":     orphanRetries,
		"net/ipv4/tcp_rto_max_ms":         rtoMaxMillis,
		"net/ipv4/ip_forward":             "1",
		"net/ipv4/conf/all/rp_filter":     "0",
		"net/ipv4/conf/default/rp_filter": "0",
		"net/ipv6/conf/all/forwarding":    "1",
	}); err != nil {
		return err
	}
	cmds := []string{"link set lo up"}
	for _, i := range c.Stacks() {
		cmds = append(cmds, fmt.Sprintf("addr add %s dev eth0%s", i.NodeOnLink(number), atOnce(i)))
	}
	cmds = append(cmds, "link set eth0 up")
	for _, i := range c.Stacks() {
		cmds = append(cmds, "route add default via "+i.Bridge().String())
		for n := 1; n <= c.Nodes; n++ {
			if n != number {
				cmds = append(cmds, fmt.Sprintf("route add %s via %s", i.PodCIDR(n), i.NodeIP(n)))
			}
		}
	}
	return run(ctx, cmds...)
}

// atOnce is an option for an address: without it, the kernel first asks for a second or two
// whether another machine has that IPv6 address.
func atOnce(i instance.Instance) string {
	if i.IPv6() {
		return " nodad"
	}
	return ""
}

// mac derives a link address, marked as locally administered, from an IP.
func mac(ip netip.Addr) string {
	b := ip.AsSlice()
	b = b[len(b)-4:]
	return fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// run executes lines of the ip command in one go.
func run(ctx context.Context, lines ...string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s (commands: %s)", err, strings.TrimSpace(string(out)), strings.Join(lines, "; "))
	}
	return nil
}

// sysctl sets parameters of the current network namespace. It skips those that this kernel
// does not have.
func sysctl(values map[string]string) error {
	for name, value := range values {
		err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644)
		if err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("set %s to %s: %w", name, value, err)
		}
	}
	return nil
}
