// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestTheTestsOwnClientWaitsOutAnOverloadedAPIServer sends requests to a server that first answers as an API server does whose etcd does
// not answer in time, though it may have carried them out.
func TestTheTestsOwnClientWaitsOutAnOverloadedAPIServer(t *testing.T) {
	timedOut := metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: request timed out"}
	failed := func(reason metav1.StatusReason, code int32) metav1.Status {
		return metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason), Details: &metav1.StatusDetails{Name: "a"},
		}
	}
	object := corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	get := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps("x").Get(t.Context(), "a", metav1.GetOptions{})
		return err
	}
	create := func(c kubernetes.Interface) error {
		made, err := c.CoreV1().ConfigMaps("x").Create(t.Context(), &object, metav1.CreateOptions{})
		if err == nil && made.Name != "a" {
			return fmt.Errorf("not what was created: %v", made)
		}
		return err
	}
	patch := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps("x").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{}}`), metav1.PatchOptions{})
		return err
	}
	remove := func(c kubernetes.Interface) error {
		return c.CoreV1().ConfigMaps("x").Delete(t.Context(), "a", metav1.DeleteOptions{})
	}
	for name, of := range map[string]struct {
		do      func(kubernetes.Interface) error
		answers []any // the last one again and again
		want    string
		refused bool
	}{
		"a read":                                 {do: get, answers: []any{timedOut, timedOut, object}, want: "GET GET GET"},
		"a patch, whose body is sent again":      {do: patch, answers: []any{timedOut, object}, want: `PATCH{"data":{}} PATCH{"data":{}}`},
		"a creation that was carried out":        {do: create, answers: []any{timedOut, failed("AlreadyExists", 409), object}, want: "POST POST GET/a"},
		"a creation of what was there":           {do: create, answers: []any{failed("AlreadyExists", 409)}, want: "POST", refused: true},
		"a deletion that was carried out":        {do: remove, answers: []any{timedOut, failed("NotFound", 404)}, want: "DELETE DELETE"},
		"a deletion of what was not there":       {do: remove, answers: []any{failed("NotFound", 404)}, want: "DELETE", refused: true},
		"a refusal":                              {do: patch, answers: []any{failed("Invalid", 422)}, want: `PATCH{"data":{}}`, refused: true},
		"another error of the server":            {do: get, answers: []any{failed("InternalError", 500)}, want: "GET", refused: true},
		"an API server that does not come round": {do: get, answers: []any{timedOut}, want: strings.TrimSpace(strings.Repeat("GET ", attempts)), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				line := r.Method
				switch r.Method {
				case http.MethodPatch:
					line += string(body)
				case http.MethodGet:
					if len(sent) > 0 && sent[0] == http.MethodPost {
						line += r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]
					}
				}
				answer := of.answers[min(len(sent), len(of.answers)-1)]
				sent = append(sent, line)
				w.Header().Set("Content-Type", "application/json")
				if status, ok := answer.(metav1.Status); ok {
					status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
					answer = status
					w.WriteHeader(int(status.Code))
				}
				_ = json.NewEncoder(w).Encode(answer)
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return patient{next: next, pause: time.Millisecond} })
			err := of.do(kubernetes.NewForConfigOrDie(config))
			if refused := err != nil; refused != of.refused {
				t.Errorf("the client was told %v (%s)", err, apierrors.ReasonForError(err))
			}
			if got := strings.Join(sent, " "); got != of.want {
				t.Errorf("sent %s, want %s", got, of.want)
			}
		})
	}
}
