// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// format is how objects travel between the operator and the API server. The operator asks for
// Kubernetes' own kinds in protobuf, which takes a fraction of JSON's time.
type format struct{ binary bool }

// formatOf returns the format of a header Accept or Content-Type.
func formatOf(header string) format {
	return format{strings.HasPrefix(header, runtime.ContentTypeProtobuf)}
}

func (f format) contentType() string {
	if f.binary {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// message is an object that knows protobuf.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// magic precedes each object in protobuf.
var magic = []byte("k8s\x00")

// wrap puts an object's protobuf into Kubernetes' envelope.
func wrap(apiVersion, kind string, raw []byte) []byte {
	b, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	must(err)
	return append(magic[:len(magic):len(magic)], b...)
}

// decode reads an object from a request.
func (f format) decode(data []byte, into any) error {
	if !f.binary {
		return json.Unmarshal(data, into)
	}
	m, ok := into.(message)
	if !ok || !bytes.HasPrefix(data, magic) {
		return errors.New("this is no object in protobuf")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(data[len(magic):]); err != nil {
		return err
	}
	return m.Unmarshal(envelope.Raw)
}

// json and proto return an object as it travels. A stored object never changes.
func (o *stored) json() []byte {
	if o.asJSON == nil {
		o.asJSON = mustJSON(o.obj)
	}
	return o.asJSON
}

func (o *stored) proto() []byte {
	if o.asProto == nil {
		var err error
		o.asProto, err = o.obj.(message).Marshal()
		must(err)
	}
	return o.asProto
}

// in returns an object in a format.
func (o *stored) in(f format, k *kind) []byte {
	if f.binary {
		return wrap(k.apiVersion, k.name, o.proto())
	}
	return o.json()
}

// listIn returns a list in a format.
func listIn(f format, k *kind, version int64, items []*stored) []byte {
	if f.binary {
		meta, err := (&metav1.ListMeta{ResourceVersion: strconv.FormatInt(version, 10)}).Marshal()
		must(err)
		// All kinds of lists have the metadata in field 1, and the items in field 2.
		b := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), meta)
		for _, o := range items {
			b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), o.proto())
		}
		return wrap(k.apiVersion, k.name+"List", b)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[`, k.name+"List", k.apiVersion, version)
	for i, o := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(o.json())
	}
	b.WriteString("]}")
	return b.Bytes()
}

// frame is one event of a watch.
func frame(f format, event string, raw []byte) []byte {
	if !f.binary {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", event, raw)
	}
	b, err := (&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: raw}}).Marshal()
	must(err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) // far from 4 GiB
}
