// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// inFull returns a step as logs show it, and below that each of its fields that is not zero:
// apply does what the fields say. It does not repeat a why that ends the first line. Items of a
// list have a line each.
func inFull(s plan.Step, n manifest.Names) string {
	d := description{names: n, lines: []string{s.String()}}
	v := reflect.ValueOf(s)
	why := v.FieldByName("why")
	if !why.IsValid() {
		why = v.FieldByName("Why")
	}
	if why.IsValid() && strings.HasSuffix(s.String(), ": "+textOf(why).String()) {
		d.shown = textOf(why).String()
	}
	d.line("", v)
	return strings.Join(d.lines, "\n")
}

type description struct {
	names manifest.Names
	shown string // the why that the first line shows
	lines []string
}

// line adds what a value holds: a line of words, and those of its lists.
func (d *description) line(prefix string, v reflect.Value) {
	at := len(d.lines)
	d.lines = append(d.lines, "")
	words := d.words("", v)
	if prefix != "" {
		words = append([]string{prefix}, words...)
	}
	if len(words) == 0 {
		d.lines = slices.Delete(d.lines, at, at+1)
		return
	}
	d.lines[at] = "  " + strings.Join(words, " ")
}

// words are what a value holds, but for zero values.
func (d *description) words(path string, v reflect.Value) []string {
	switch v = textOf(v); v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return []string{path}
		}
	case reflect.String:
		if s := v.String(); s != "" && (path != "why" || s != d.shown) {
			return []string{path + "=" + quoted(s)}
		}
	case reflect.Int, reflect.Int64:
		if v.Int() != 0 {
			return []string{path + "=" + strconv.FormatInt(v.Int(), 10)}
		}
	case reflect.Uint64:
		if v.Uint() != 0 {
			return []string{path + "=" + strconv.FormatUint(v.Uint(), 10)}
		}
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return append([]string{path}, d.words(path, v.Elem())...)
	case reflect.Struct:
		var all []string
		for i := range v.NumField() {
			name := lowerFirst(v.Type().Field(i).Name)
			if path != "" {
				name = path + "." + name
			}
			all = append(all, d.words(name, v.Field(i))...)
		}
		return all
	case reflect.Slice:
		for i := range v.Len() {
			d.line(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[etcd.InitialCluster]() && v.Len() > 0 {
			return []string{path + "=" + d.initialCluster(v)}
		}
		if addresses, ok := v.Interface().(map[string]string); ok && v.Len() > 0 {
			var all []string
			for _, host := range slices.Sorted(maps.Keys(addresses)) {
				member, _, _ := strings.Cut(host, ".")
				all = append(all, member+"@"+addresses[host])
			}
			return []string{path + "=" + strings.Join(all, ",")}
		}
		if v.Len() > 0 {
			panic(fmt.Sprintf("%s: inFull does not know how to show a %s", path, v.Type()))
		}
	default:
		panic(fmt.Sprintf("%s: inFull does not know how to show a %s", path, v.Type()))
	}
	return nil
}

// textOf is the text of a Reason, and any other value itself.
func textOf(v reflect.Value) reflect.Value {
	if v.Type() == reflect.TypeFor[plan.Reason]() {
		return reflect.ValueOf(v.Interface().(plan.Reason).String())
	}
	return v
}

// lowerFirst is the name of a field as descriptions show it, exported or not.
func lowerFirst(name string) string {
	if name == strings.ToUpper(name) {
		return strings.ToLower(name)
	}
	return strings.ToLower(name[:1]) + name[1:]
}

// initialCluster names the members, with their URLs where those are not theirs.
func (d *description) initialCluster(v reflect.Value) string {
	var members []string
	for all := v.MapRange(); all.Next(); {
		url, name := all.Key().String(), all.Value().String()
		if url != d.names.PeerURL(name) {
			name += "=" + url
		}
		members = append(members, name)
	}
	slices.Sort(members)
	return strings.Join(members, ",")
}

func quoted(s string) string {
	if strings.ContainsAny(s, " \"\n") {
		return strconv.Quote(s)
	}
	return s
}

// allSteps is one of each kind.
var allSteps = []plan.Step{
	plan.Idle{}, plan.Wait{}, plan.WaitForPod{}, plan.CreateService{}, plan.UpdateService{}, plan.DeleteService{}, plan.CreateBudget{}, plan.UpdateBudget{}, plan.DeleteBudget{},
	plan.ChooseSeed{}, plan.MarkRunning{}, plan.MarkFailed{}, plan.CreatePods{}, plan.DeletePod{}, plan.SetVersion{}, plan.RecyclePod{}, plan.SetMetadata{},
	plan.DeleteVolume{}, plan.ExpandVolume{}, plan.SetVolumeVersion{}, plan.SetVolumeOwner{}, plan.AddMember{}, plan.PromoteMember{}, plan.RemoveMember{}, plan.AdvanceLog{},
	plan.MoveLeader{}, plan.LiftAlarms{}, plan.NoteMember{}, plan.EnableAuth{}, plan.DisableAuth{}, plan.ChangePassword{}, observing{},
	plan.WriteBridge{},
	plan.HoldImport{}, plan.BeginImport{}, plan.CommitImport{}, plan.FinishImport{}, plan.ReleaseImport{},
	plan.StopWrites{}, plan.RecordStop{}, plan.ResumeWrites{},
	plan.ServeData{}, plan.StoreSurvivor{}, plan.RestoreChosen{}, plan.DeleteRestore{},
}

func TestAllStepsAreKnownToTheTests(t *testing.T) {
	var known []string
	for _, s := range allSteps {
		known = append(known, reflect.TypeOf(s).Name())
	}
	slices.Sort(known)
	if declared := declaredSteps(t); !slices.Equal(known, declared) {
		t.Errorf("allSteps has\n%q, and the package declares\n%q", known, declared)
	}
}

// declaredSteps are the types of the package with a String as step asks for it.
func declaredSteps(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("plan/*.go")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, own...)
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "String" {
				continue
			}
			if receiver, ok := f.Recv.List[0].Type.(*ast.Ident); ok && receiver.Name != reflect.TypeFor[plan.Reason]().Name() {
				found = append(found, receiver.Name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// The scripts compare descriptions, and nothing else.
func TestDescriptionsShowEveryFieldOfEveryStep(t *testing.T) {
	n := manifest.Names{Namespace: "ns", Cluster: "c"}
	for _, s := range allSteps {
		v := reflect.New(reflect.TypeOf(s)).Elem()
		text := func() string { return inFull(v.Interface().(plan.Step), n) }
		eachField(t, v, v.Type().Name(), func(field string, set, unset func()) {
			without := text()
			set()
			if with := text(); with == without {
				t.Errorf("%s does not show in %q", field, with)
			}
			unset()
		})
	}
}

// eachField calls check for each field of a value, also of the values in it, with
// functions that set it and take that back.
func eachField(t *testing.T, v reflect.Value, path string, check func(field string, set, unset func())) {
	t.Helper()
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() // those that are not exported too
	to := func(value any) {
		check(path, func() { v.Set(reflect.ValueOf(value).Convert(v.Type())) }, v.SetZero)
	}
	switch v.Kind() {
	case reflect.Bool:
		to(true)
	case reflect.String:
		to("text")
	case reflect.Int, reflect.Int64, reflect.Uint64:
		to(7)
	case reflect.Struct:
		for i := range v.NumField() {
			eachField(t, v.Field(i), path+"."+v.Type().Field(i).Name, check)
		}
	case reflect.Pointer:
		to(reflect.New(v.Type().Elem()).Interface())
		v.Set(reflect.New(v.Type().Elem()))
		eachField(t, v.Elem(), path, check)
		v.SetZero()
	case reflect.Slice:
		one := reflect.MakeSlice(v.Type(), 1, 1)
		to(one.Interface())
		v.Set(one)
		eachField(t, v.Index(0), path+"[0]", check)
		v.SetZero()
	case reflect.Map:
		of := reflect.MakeMap(v.Type())
		of.SetMapIndex(reflect.ValueOf("http://elsewhere").Convert(v.Type().Key()), reflect.ValueOf("name").Convert(v.Type().Elem()))
		to(of.Interface())
	default:
		t.Errorf("%s: what can be set in a %s?", path, v.Type())
	}
}
