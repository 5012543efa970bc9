// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// argoHealth is Argo CD's word for each of kstatus'. The interpreter is that of Argo CD.
var argoHealth = map[status.Status]string{
	status.InProgressStatus: "Progressing", status.TerminatingStatus: "Progressing", status.FailedStatus: "Degraded", status.CurrentStatus: "Healthy",
}

// mustAgree fails the test unless Argo CD says what kstatus says of an object; but what is done and has no pods is Suspended.
func mustAgree(t *testing.T, live *unstructured.Unstructured, verdict *status.Result) {
	t.Helper()
	want := argoHealth[verdict.Status]
	if phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); phase == string(v1beta1.PhaseStopped) && want == "Healthy" {
		want = "Suspended"
	}
	if got, message := healthOf(t, live); got != want || message == "" && want != "Healthy" {
		t.Errorf("Argo CD says %s (%s) of %s, want %s; status %v", got, message, live.GetName(), want, live.Object["status"])
	}
}

// healthScript reads deploy/gitops/argocd/health.lua.
var healthScript = sync.OnceValues(func() ([]byte, error) {
	return os.ReadFile(filepath.Join("..", "..", "..", "deploy", "gitops", "argocd", "health.lua"))
})

// healthOf runs the script on an object.
func healthOf(t *testing.T, live *unstructured.Unstructured) (health, message string) {
	t.Helper()
	script, err := healthScript()
	if err != nil {
		t.Fatal(err)
	}
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	lua.OpenBase(l)
	l.SetGlobal("obj", luaValue(l, live.Object))
	if err := l.DoString(string(script)); err != nil {
		t.Fatalf("%v on %v", err, live.Object)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v", l.Get(-1))
	}
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))
}

// luaValue is a value of JSON in Lua.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		table := l.NewTable()
		for _, item := range v {
			table.Append(luaValue(l, item))
		}
		return table
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}

// TestArgoKnowsEachKind shows that the script is installed for each kind that the CRDs define.
func TestArgoKnowsEachKind(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "gitops", "argocd", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{v1beta1.MCPServerKind}
	for kind := range specs {
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		if !slices.Contains(strings.Split(string(text), "\n"), "  - resource.customizations.health."+v1beta1.SchemeGroupVersion.Group+"_"+kind+"=health.lua") {
			t.Errorf("%s is missing", kind)
		}
	}
}
