// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instance names everything that one local Kubernetes owns: its
// directories, addresses, links and cgroups. It only computes; it changes
// nothing on the machine.
package instance

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Default is the name of the instance that is used when LOCALKUBE_NAME is unset.
const Default = "localkube"

// MaxNodes bounds the number of nodes: each has a /24 for its pods.
const MaxNodes = 30

// An Instance is one local Kubernetes. Instances with different names run side by side.
type Instance struct {
	Name    string       `json:"name"`
	State   string       `json:"state"`
	Network netip.Prefix `json:"network"`
	// Second is the network of the other family, if the instance has two (dual stack).
	Second netip.Prefix `json:"second,omitzero"`
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,10}[a-z0-9]$`)

// FromEnv reads LOCALKUBE_NAME, LOCALKUBE_STATE and LOCALKUBE_NETWORK.
func FromEnv(getenv func(string) string) (Instance, error) {
	i := Instance{Name: getenv("LOCALKUBE_NAME"), State: getenv("LOCALKUBE_STATE")}
	if i.Name == "" {
		i.Name = Default
	}
	if !validName.MatchString(i.Name) {
		return i, fmt.Errorf("LOCALKUBE_NAME=%q: want 2 to 12 of a-z, 0-9 and -, beginning with a letter", i.Name)
	}
	if i.State == "" {
		i.State = "/var/lib/etcd-operator-localkube"
		if i.Name != Default {
			i.State += "-" + i.Name
		}
	}
	if !filepath.IsAbs(i.State) || filepath.Clean(i.State) == "/" {
		return i, fmt.Errorf("LOCALKUBE_STATE=%q: want an absolute path of a directory that may be deleted", i.State)
	}
	i.State = filepath.Clean(i.State)
	// A unix socket's path holds 107 bytes, and containerd's is the longest.
	if longest := i.ContainerdSocket(fmt.Sprintf("node%d", MaxNodes)); len(longest) > 107 {
		return i, fmt.Errorf("LOCALKUBE_STATE=%q is too long: the socket %s would exceed 107 bytes", i.State, longest)
	}
	var err error
	first, second, dual := strings.Cut(getenv("LOCALKUBE_NETWORK"), ",")
	if i.Network, err = network(i.Name, first); err != nil || !dual {
		return i, err
	}
	if i.Second, err = network(i.Name, second); err == nil && i.Second.Addr().Is4() == i.Network.Addr().Is4() {
		err = fmt.Errorf("LOCALKUBE_NETWORK=%s,%s: want networks of two families, such as 10.96.0.0/16,fd00:96::/112", first, second)
	}
	return i, err
}

// Stacks returns the instance once for each family of addresses, the primary one first.
func (i Instance) Stacks() []Instance {
	first := i
	first.Second = netip.Prefix{}
	if !i.Second.IsValid() {
		return []Instance{first}
	}
	second := first
	second.Network = i.Second
	return []Instance{first, second}
}

// ForStacks joins what a function returns for each family of addresses by commas.
func ForStacks[T fmt.Stringer](i Instance, of func(Instance) T) string {
	var list []string
	for _, stack := range i.Stacks() {
		list = append(list, of(stack).String())
	}
	return strings.Join(list, ",")
}

// network gives the default instance kubeadm's range, and others one that follows from their
// name.
func network(name, wanted string) (netip.Prefix, error) {
	if wanted == "" {
		second := 96
		if name != Default {
			h := fnv.New32a()
			h.Write([]byte(name))
			second = 100 + int(h.Sum32()%100)
		}
		wanted = fmt.Sprintf("10.%d.0.0/16", second)
	}
	p, err := netip.ParsePrefix(wanted)
	if err != nil || p.Addr().BitLen()-p.Bits() != 16 || p.Addr().Is4In6() || p != p.Masked() {
		return p, fmt.Errorf("LOCALKUBE_NETWORK=%q: want an IPv4 /16 such as 10.96.0.0/16, or an IPv6 /112 such as fd00:96::/112", wanted)
	}
	return p, nil
}

// The range has 16 bits. It is divided by the last byte but one: services below 64, the
// nodes' bridge at 64, the link to the host at 65, the nodes' pods from 128 on.
func (i Instance) addr(third, last byte) netip.Addr {
	a := i.Network.Addr().AsSlice()
	a[len(a)-2], a[len(a)-1] = third, last
	addr, _ := netip.AddrFromSlice(a)
	return addr
}

// part is the range of 2^free addresses that begins at an address.
func (i Instance) part(first netip.Addr, free int) netip.Prefix {
	return netip.PrefixFrom(first, first.BitLen()-free)
}

// IPv6 reports whether the instance has IPv6 addresses. If it has two families: whether IPv6 is
// the primary one.
func (i Instance) IPv6() bool { return i.Network.Addr().Is6() }

// Services is the range of the Services' cluster addresses.
func (i Instance) Services() netip.Prefix { return i.part(i.addr(0, 0), 14) }

// APIService is the cluster address of the Service "kubernetes".
func (i Instance) APIService() netip.Addr { return i.addr(0, 1) }

// Bridge is the address of the control plane on the network of the nodes: the
// API server and the cluster's DNS listen here.
func (i Instance) Bridge() netip.Addr { return i.addr(64, 1) }

// BridgeOnLink is Bridge with the prefix length of the nodes' network.
func (i Instance) BridgeOnLink() netip.Prefix { return i.part(i.Bridge(), 8) }

// NodeIP is the address of the n-th node, counted from 1.
func (i Instance) NodeIP(n int) netip.Addr { return i.addr(64, byte(10+n)) }

// NodeOnLink is NodeIP with the prefix length of the nodes' network.
func (i Instance) NodeOnLink(n int) netip.Prefix { return i.part(i.NodeIP(n), 8) }

// Pods is the range that holds all pods.
func (i Instance) Pods() netip.Prefix { return i.part(i.addr(128, 0), 15) }

// PodCIDR is the range of the pods of the n-th node.
func (i Instance) PodCIDR(n int) netip.Prefix { return i.part(i.addr(byte(128+n), 0), 8) }

// HostIP is the host's end of the link between host and cluster.
func (i Instance) HostIP() netip.Addr { return i.addr(65, 1) }

// UplinkIP is the cluster's end of that link.
func (i Instance) UplinkIP() netip.Addr { return i.addr(65, 2) }

// OnUplink is an address with the prefix length of the link between host and cluster.
func (i Instance) OnUplink(end netip.Addr) netip.Prefix { return i.part(end, 2) }

// HostLink is the host's end of that link. Linux allows 15 characters.
func (i Instance) HostLink() string { return "lk-" + i.Name }

// APIServer is the URL of the API server.
func (i Instance) APIServer() string {
	return "https://" + netip.AddrPortFrom(i.Bridge(), 6443).String()
}

// CgroupPrefix begins the names of all instances' cgroups.
const CgroupPrefix = "/etcd-operator-"

// Cgroup is the instance's cgroup, relative to the root of each hierarchy.
func (i Instance) Cgroup() string { return CgroupPrefix + i.Name }

// NodeCgroup holds the pods of a node.
func (i Instance) NodeCgroup(node string) string { return i.Cgroup() + "/" + node }

// Lock is the file that commands lock before they change the instance. It is beside the state,
// which `down` removes.
func (i Instance) Lock() string { return i.State + ".lock" }

// Path joins elements to the state directory.
func (i Instance) Path(elem ...string) string {
	return filepath.Join(append([]string{i.State}, elem...)...)
}

// Kubeconfig is the administrator's kubeconfig.
func (i Instance) Kubeconfig() string { return i.Path("kubeconfig") }

// Log is the log of a component.
func (i Instance) Log(component string) string { return i.Path("logs", component+".log") }

// Socket is where the supervisor takes commands.
func (i Instance) Socket() string { return i.Path("supervisor.sock") }

// NodeDir contains a node's disk.
func (i Instance) NodeDir(node string, elem ...string) string {
	return i.Path(append([]string{"nodes", node}, elem...)...)
}

// Delays is the directory that says how long fsyncs take on a node's disks.
func (i Instance) Delays(node string) string { return i.NodeDir(node, "delays") }

// ContainerdSocket is the socket of a node's containerd.
func (i Instance) ContainerdSocket(node string) string {
	return i.NodeDir(node, "containerd.sock")
}

// NodeName names the n-th node, counted from 1.
func NodeName(n int) string { return fmt.Sprintf("node%d", n) }

// NodeNumber is the inverse of NodeName.
func NodeNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "node")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 1 && n <= MaxNodes && NodeName(n) == name
}

// Zone spreads the nodes over three zones.
func Zone(n int) string { return "zone-" + string(rune('a'+(n-1)%3)) }
