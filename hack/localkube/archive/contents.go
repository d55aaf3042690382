// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// hostCertificates is the file with all certificates of Debian's ca-certificates.
const hostCertificates = "/etc/ssl/certs/ca-certificates.crt"

// base is the files that a static program expects in its image.
func base(passwd, group string) []File {
	return []File{
		{Path: "/etc/passwd", Mode: 0o644, Content: []byte(passwd)},
		{Path: "/etc/group", Mode: 0o644, Content: []byte(group)},
		{Path: "/etc/nsswitch.conf", Mode: 0o644, Content: []byte("hosts: files dns\n")},
		{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Source: hostCertificates},
		{Path: "/tmp", Mode: 0o1777, Dir: true},
	}
}

const (
	rootPasswd = "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	rootGroup  = "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"
)

// Etcd is an image like the official ones: etcd and its tools, no shell. Programs that are not
// static, such as Debian's, bring their libraries.
func Etcd(version, arch, dir string, programs []string, libraries map[string]string) Image {
	files := []File{
		{Path: "/var/etcd", Mode: 0o755, Dir: true},
		{Path: "/var/lib/etcd", Mode: 0o755, Dir: true},
	}
	for _, p := range programs {
		files = append(files, File{Path: "/usr/local/bin/" + p, Mode: 0o755, Source: filepath.Join(dir, p)})
	}
	for inside, source := range libraries {
		files = append(files, File{Path: inside, Mode: 0o755, Source: source})
	}
	return Image{
		Names: []string{"quay.io/coreos/etcd:" + version}, Arch: arch,
		Layers:     [][]File{base(rootPasswd, rootGroup), files},
		Command:    []string{"/usr/local/bin/etcd"},
		WorkingDir: "/var/lib/etcd/",
		Ports:      []string{"2379/tcp", "2380/tcp"},
		Labels:     map[string]string{"org.opencontainers.image.version": version},
	}
}

var libraryLine = regexp.MustCompile(`(?:=> )?(/\S+) \(0x`)

// Libraries finds the shared libraries of a program on the host: their paths in the image, and
// on the host.
func Libraries(ctx context.Context, program string) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "ldd", program).CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "not a dynamic executable") {
			return nil, nil
		}
		return nil, fmt.Errorf("find the libraries of %s: %w: %s", program, err, out)
	}
	libs := map[string]string{}
	for _, m := range libraryLine.FindAllStringSubmatch(string(out), -1) {
		target, err := filepath.EvalSymlinks(m[1])
		if err != nil {
			return nil, err
		}
		libs[m[1]] = target
	}
	return libs, nil
}

// Busybox is an image of Debian's busybox-static, with a link per applet.
func Busybox(ctx context.Context, name, arch, program string) (Image, error) {
	out, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return Image{}, fmt.Errorf("list the applets of %s: %w", program, err)
	}
	files := []File{{Path: "/bin/busybox", Mode: 0o755, Source: program}}
	for _, applet := range strings.Fields(string(out)) {
		if applet != "busybox" {
			files = append(files, File{Path: path.Join("/bin", applet), Mode: 0o777, Link: "busybox"})
		}
	}
	files = append(files, File{Path: "/root", Mode: 0o700, Dir: true})
	return Image{
		Names: []string{name}, Arch: arch,
		Layers:  [][]File{base(strings.ReplaceAll(rootPasswd, "/sbin/nologin", "/bin/sh"), rootGroup), files},
		Command: []string{"sh"},
	}, nil
}

// Pause is the image that holds a pod's namespaces.
func Pause(name, arch, program string) Image {
	return Image{
		Names: []string{name}, Arch: arch,
		Layers:     [][]File{{{Path: "/pause", Mode: 0o755, Source: program}}},
		Entrypoint: []string{"/pause"},
		User:       "65535:65535",
	}
}

// Operator is the image of the operators.
func Operator(names []string, arch string, programs map[string]string, license string, labels map[string]string) Image {
	passwd := "root:x:0:0:root:/root:/sbin/nologin\netcd-operator:x:65532:65532:etcd-operator:/:/sbin/nologin\n"
	group := "root:x:0:\netcd-operator:x:65532:\n"
	var files []File
	for name, source := range programs {
		files = append(files, File{Path: "/usr/local/bin/" + name, Mode: 0o755, Source: source})
	}
	if license != "" {
		files = append(files, File{Path: "/usr/share/doc/etcd-operator/LICENSE", Mode: 0o644, Source: license})
	}
	return Image{
		Names: names, Arch: arch, Compressed: true,
		Layers:  [][]File{base(passwd, group), files},
		User:    "65532:65532",
		Command: []string{"/usr/local/bin/etcd-operator"},
		Labels:  labels,
	}
}
