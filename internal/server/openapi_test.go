package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

// The parts of api/openapi.yaml that are held to the code. The file is YAML written as JSON.
type (
	document struct {
		Paths      map[string]map[string]operation
		Components struct {
			Schemas map[string]schema
		}
	}
	operation struct {
		Summary     string
		Parameters  []parameter
		RequestBody *struct {
			Required bool
			Content  map[string]media
		}
		Responses map[string]response
	}
	parameter struct {
		Ref         string `json:"$ref"`
		Name, In    string
		Description string
		Schema      schema
	}
	response struct {
		Ref     string `json:"$ref"`
		Content map[string]media
	}
	media  struct{ Schema schema }
	schema struct {
		Ref                  string `json:"$ref"`
		Type                 any
		Required             []string
		Properties           map[string]schema
		Items                *schema
		AdditionalProperties any
		ContentEncoding      string
		AllOf                []schema
		Const                string
		Description          string
	}
)

func readDocument(t *testing.T) document {
	t.Helper()
	b, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpenAPIHasEveryRouteAndNoOther(t *testing.T) {
	doc := readDocument(t)
	var got, want []string
	for path, ops := range doc.Paths {
		for method := range ops {
			got = append(got, method+" "+path)
		}
	}
	for _, d := range server.RouteDocs() {
		want = append(want, d.Method+" "+d.Path)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-) and openapi.yaml (+) differ:\n%s", diff)
	}
}

func TestOpenAPIRoutesAreTheTables(t *testing.T) {
	doc := readDocument(t)
	for _, d := range server.RouteDocs() {
		t.Run(d.Method+" "+d.Path, func(t *testing.T) {
			op := doc.Paths[d.Path][d.Method]
			if op.Summary != d.Doc {
				t.Errorf("summary %q, want %q", op.Summary, d.Doc)
			}
			checkParameters(t, op, d)
			checkRequestBody(t, op, d)
			checkResponses(t, op, d)
		})
	}
}

func checkParameters(t *testing.T, op operation, d server.RouteDoc) {
	t.Helper()
	got := map[string]string{}
	hasRef := false
	for _, p := range op.Parameters {
		if p.Ref != "" {
			hasRef = p.Ref == "#/components/parameters/ref"
			continue
		}
		if p.In != "query" || (p.Schema.Type == "array") != d.Many[p.Name] {
			t.Errorf("parameter %s: in %q, type %v", p.Name, p.In, p.Schema.Type)
		}
		got[p.Name] = p.Description
	}
	if diff := cmp.Diff(d.Params, got); diff != "" {
		t.Errorf("parameters:\n%s", diff)
	}
	if hasRef != strings.Contains(d.Path, "{ref}") {
		t.Errorf("the path parameter is named: %v", hasRef)
	}
}

func checkRequestBody(t *testing.T, op operation, d server.RouteDoc) {
	t.Helper()
	if (op.RequestBody != nil) != d.HasBody {
		t.Fatalf("has a body: %v, want %v", op.RequestBody != nil, d.HasBody)
	}
	if !d.HasBody {
		return
	}
	if op.RequestBody.Required == d.BodyOptional {
		t.Errorf("body required: %v", op.RequestBody.Required)
	}
	if d.In == nil {
		checkMedia(t, "body", op.RequestBody.Content, map[string]any{api.BytesType: nil})
		return
	}
	checkMedia(t, "body", op.RequestBody.Content, map[string]any{api.JSONType: d.In})
}

func checkResponses(t *testing.T, op operation, d server.RouteDoc) {
	t.Helper()
	var want []string
	for status, bodies := range d.Replies {
		want = append(want, strconv.Itoa(status))
		checkMedia(t, fmt.Sprint(status), op.Responses[strconv.Itoa(status)].Content, bodies)
	}
	for _, status := range d.Errors {
		want = append(want, strconv.Itoa(status))
		if got := op.Responses[strconv.Itoa(status)].Ref; got != "#/components/responses/Problem" {
			t.Errorf("%d is %q, want a problem", status, got)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(op.Responses))); diff != "" {
		t.Errorf("statuses:\n%s", diff)
	}
}

func checkMedia(t *testing.T, where string, got map[string]media, want map[string]any) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)), emptyIsNil); diff != "" {
		t.Errorf("%s: media types:\n%s", where, diff)
	}
	for name, body := range want {
		ref := ""
		if body != nil {
			ref = "#/components/schemas/" + reflect.TypeOf(body).Name()
		}
		if got[name].Schema.Ref != ref {
			t.Errorf("%s %s: schema %q, want %q", where, name, got[name].Schema.Ref, ref)
		}
	}
}

var emptyIsNil = cmp.Transformer("emptyIsNil", func(s []string) []string { return append([]string{}, s...) })

// Every type that a route speaks has a schema with exactly its fields, and every schema belongs to a type.
func TestOpenAPISchemasAreTheTypes(t *testing.T) {
	doc := readDocument(t)
	types := map[string]reflect.Type{}
	collect(types, reflect.TypeFor[api.Problem]())
	for _, d := range server.RouteDocs() {
		if d.In != nil {
			collect(types, reflect.TypeOf(d.In))
		}
		for _, bodies := range d.Replies {
			for _, body := range bodies {
				if body != nil {
					collect(types, reflect.TypeOf(body))
				}
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(types)), slices.Sorted(maps.Keys(doc.Components.Schemas))); diff != "" {
		t.Errorf("types (-) and schemas (+):\n%s", diff)
	}
	for name, typ := range types {
		if typ.Kind() == reflect.Struct {
			t.Run(name, func(t *testing.T) { checkSchema(t, typ, doc.Components.Schemas[name]) })
		}
	}
}

// collect finds the named types of package api that a type is made of.
func collect(into map[string]reflect.Type, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(into, t.Elem())
		return
	}
	if t.PkgPath() != reflect.TypeFor[api.Job]().PkgPath() || into[t.Name()] != nil {
		return
	}
	into[t.Name()] = t
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			collect(into, f.Type)
		}
	}
}

func checkSchema(t *testing.T, typ reflect.Type, s schema) {
	var fields, required, embedded []string
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			embedded = append(embedded, "#/components/schemas/"+f.Type.Name())
			continue
		}
		fields = append(fields, name)
		if options == "" {
			required = append(required, name)
		}
		checkField(t, name, f.Type, s.Properties[name])
	}
	slices.Sort(fields)
	var allOf []string
	for _, part := range s.AllOf {
		allOf = append(allOf, part.Ref)
	}
	slices.Sort(required)
	slices.Sort(s.Required)
	for what, pair := range map[string][2][]string{
		"fields":   {fields, slices.Sorted(maps.Keys(s.Properties))},
		"required": {required, s.Required},
		"embedded": {embedded, allOf},
	} {
		if diff := cmp.Diff(pair[0], pair[1], emptyIsNil); diff != "" {
			t.Errorf("%s: type (-), schema (+):\n%s", what, diff)
		}
	}
}

func checkField(t *testing.T, name string, typ reflect.Type, s schema) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.PkgPath() != "" {
		if want := "#/components/schemas/" + typ.Name(); s.Ref != want {
			t.Errorf("%s refers to %q, want %q", name, s.Ref, want)
		}
		return
	}
	want := map[reflect.Kind]any{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer",
		reflect.Uint32: "integer", reflect.Slice: "array", reflect.Map: "object", reflect.Interface: nil,
	}[typ.Kind()]
	switch {
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8:
		if s.Type != "string" || s.ContentEncoding != "base64" {
			t.Errorf("%s is %v %q, want base64 text", name, s.Type, s.ContentEncoding)
		}
	case s.Type != want:
		t.Errorf("%s is %v, want %v", name, s.Type, want)
	case typ.Kind() == reflect.Slice:
		if s.Items == nil {
			t.Errorf("%s has no items", name)
			return
		}
		checkField(t, name+"[]", typ.Elem(), *s.Items)
	case typ.Kind() == reflect.Map:
		value, _ := s.AdditionalProperties.(map[string]any)
		if kind, _ := value["type"].(string); kind != map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer"}[typ.Elem().Kind()] {
			t.Errorf("%s has values of %v", name, s.AdditionalProperties)
		}
	}
}

// Whatever code admission answers with, POST /v1/jobs documents its status.
func TestSubmitDocumentsEveryCode(t *testing.T) {
	for _, d := range server.RouteDocs() {
		if d.Method != "post" || d.Path != api.PathJobs {
			continue
		}
		for _, code := range job.Codes() {
			if !slices.Contains(d.Errors, code.HTTPStatus()) {
				t.Errorf("%s answers %d, which is not documented", code, code.HTTPStatus())
			}
		}
	}
}

func TestOpenAPIConstants(t *testing.T) {
	s := readDocument(t).Components.Schemas
	if got := s["Result"].Properties["schema"].Const; got != api.ResultSchema {
		t.Errorf("result schema %q", got)
	}
	if got := s["VersionInfo"].Properties["product"].Const; got != api.Product {
		t.Errorf("product %q", got)
	}
	for _, state := range job.States() {
		if !strings.Contains(s["Job"].Properties["state"].Description, string(state)) {
			t.Errorf("state %s is not described", state)
		}
	}
	for _, status := range job.Statuses() {
		if !strings.Contains(s["Outcome"].Properties["status"].Description, string(status)) {
			t.Errorf("status %s is not described", status)
		}
	}
}
