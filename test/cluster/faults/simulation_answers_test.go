// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// ask is one request of a conversation with an API server. In the path and the body, $NS is the namespace, and $UID, $VERSION and $CONTINUE
// are what the last answer said that had them. $LATER is a version that is yet to come.
type ask struct {
	verb string
	// path begins with the resource, or with a slash.
	path string
	// media is the type of the body; JSON by default.
	media types.PatchType
	body  string
	// unheard is set where the answer is not compared.
	unheard bool
	// toItsEnd is set where a watch is read before the next request.
	toItsEnd bool
}

// answer is what is compared of an answer.
type answer struct {
	Asked      string
	Code       int
	RetryAfter string   `json:",omitempty"`
	Late       bool     `json:",omitempty"`
	Text       string   `json:",omitempty"`
	Status     *refusal `json:",omitempty"`
	Object     *object  `json:",omitempty"`
	Items      []string `json:",omitempty"`
	Continues  bool     `json:",omitempty"`
	Remaining  *int64   `json:",omitempty"`
	Events     []string `json:",omitempty"`
}

type refusal struct {
	Status, Reason, Message string
	Causes                  []metav1.StatusCause
	// Of is what the details name.
	Of string
}

type object struct {
	Kind, Name string
	Finalizers []string
	Deleted    bool
	Grace      *int64
	Generation int64
	// Values are the fields of the spec, the data and the conditions of the status that the conversations are about.
	Values []string
	// Owners have what each field manager owns.
	Owners []string
}

// conversation is held with the model of an API server and with a real one.
type conversation struct {
	server *http.Client
	host   string
	words  map[string]string
	// watched are the answers that have not ended yet.
	watched map[int]io.ReadCloser
	answers []answer
}

// converse sends requests one after the other, and returns the answers. Watches are read to their end after that.
func converse(t *testing.T, config *rest.Config, namespace string, asks []ask) []answer {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &conversation{server: client, host: config.Host, words: map[string]string{"$NS": namespace}, watched: map[int]io.ReadCloser{}}
	for _, a := range asks {
		c.send(t, a)
	}
	for i, body := range c.watched {
		c.answers[i].Events = eventsOf(t, body)
	}
	return c.answers
}

func (c *conversation) filled(text string) string {
	for _, word := range []string{"$NS", "$UID", "$VERSION", "$CONTINUE", "$LATER"} {
		text = strings.ReplaceAll(text, word, c.words[word])
	}
	return text
}

var (
	// newest is the version that the whole server has.
	newest = regexp.MustCompile(`current: \d+`)
	// hookHost is where a webhook listens.
	hookHost = regexp.MustCompile(`Post "https://[^/?"]+`)
)

// lateness is how long an answer takes at least that waits for a slow webhook.
const lateness = 3 * time.Second

// unfilled takes out of a message what differs from server to server.
func (c *conversation) unfilled(text string) string {
	text = hookHost.ReplaceAllString(newest.ReplaceAllString(text, "current: ..."), `Post "https://...`)
	for _, word := range []string{"$UID", "$LATER", "$VERSION"} {
		if c.words[word] != "" {
			text = strings.ReplaceAll(text, c.words[word], word)
		}
	}
	return text
}

func (c *conversation) send(t *testing.T, a ask) {
	t.Helper()
	path := c.filled(a.path)
	switch resource, _, _ := strings.Cut(strings.SplitN(path, "?", 2)[0], "/"); resource {
	case "":
	case "deployments":
		path = "/apis/apps/v1/namespaces/" + c.words["$NS"] + "/" + path
	default:
		path = "/api/v1/namespaces/" + c.words["$NS"] + "/" + path
	}
	request, err := http.NewRequestWithContext(t.Context(), a.verb, c.host+path, strings.NewReader(c.filled(a.body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", runtime.ContentTypeJSON)
	request.Header.Set("User-Agent", "client")
	request.Header.Set("Content-Type", runtime.ContentTypeJSON)
	if a.media != "" {
		request.Header.Set("Content-Type", string(a.media))
	}
	began := time.Now()
	response, err := c.server.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", a.verb, a.path, err)
	}
	got := answer{Asked: a.verb + " " + a.path, Code: response.StatusCode, RetryAfter: response.Header.Get("Retry-After")}
	if takes := slowness[request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]]; takes > 0 {
		got.Late = time.Since(began) > lateness
	}
	if strings.Contains(a.path, "watch=true") && response.StatusCode == http.StatusOK {
		if a.toItsEnd {
			got.Events = eventsOf(t, response.Body)
		} else {
			c.watched[len(c.answers)] = response.Body
		}
		c.answers = append(c.answers, got)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if a.unheard {
		return
	}
	c.read(t, body, &got)
	c.answers = append(c.answers, got)
}

// read takes from a body what is compared.
func (c *conversation) read(t *testing.T, body []byte, into *answer) {
	t.Helper()
	var whole struct {
		Kind     string
		Items    []metav1.PartialObjectMetadata
		Metadata metav1.ListMeta
	}
	if err := json.Unmarshal(body, &whole); err != nil {
		into.Text = string(body)
		return
	}
	switch {
	case whole.Kind == "Status":
		var status metav1.Status
		mustRead(t, body, &status)
		into.Status = &refusal{Status: status.Status, Reason: string(status.Reason), Message: c.unfilled(status.Message)}
		if status.Details != nil {
			into.Status.Causes = status.Details.Causes
			for i := range into.Status.Causes {
				into.Status.Causes[i].Message = c.unfilled(into.Status.Causes[i].Message)
			}
			into.Status.Of = strings.TrimSpace(status.Details.Group + " " + status.Details.Kind + " " + status.Details.Name)
		}
	case strings.HasSuffix(whole.Kind, "List"):
		for i := range whole.Items {
			into.Items = append(into.Items, strings.TrimSpace(whole.Items[i].Kind+" "+whole.Items[i].Name))
		}
		into.Continues, into.Remaining = whole.Metadata.Continue != "", whole.Metadata.RemainingItemCount
		c.words["$CONTINUE"], c.words["$VERSION"] = whole.Metadata.Continue, whole.Metadata.ResourceVersion
	default:
		var meta metav1.PartialObjectMetadata
		mustRead(t, body, &meta)
		c.words["$UID"], c.words["$VERSION"] = string(meta.UID), meta.ResourceVersion
		c.words["$LATER"] = meta.ResourceVersion + "00"
		into.Object = objectOf(t, body)
	}
}

func mustRead(t *testing.T, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

// objectOf takes from an object what is compared.
func objectOf(t *testing.T, body []byte) *object {
	t.Helper()
	var meta metav1.PartialObjectMetadata
	mustRead(t, body, &meta)
	var content struct {
		Data map[string]string
		Spec struct {
			Replicas *int64
			Paused   *bool
		}
		Status struct {
			Phase      string
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	mustRead(t, body, &content)
	obj := &object{
		Kind: meta.Kind, Name: meta.Name, Finalizers: meta.Finalizers, Deleted: meta.DeletionTimestamp != nil,
		Grace: meta.DeletionGracePeriodSeconds, Generation: meta.Generation,
	}
	add := func(format string, args ...any) { obj.Values = append(obj.Values, fmt.Sprintf(format, args...)) }
	for key, value := range content.Data {
		add("data.%s=%s", key, value)
	}
	if content.Spec.Replicas != nil {
		add("spec.replicas=%d", *content.Spec.Replicas)
	}
	for _, condition := range content.Status.Conditions {
		if condition.Type != string(corev1.DisruptionTarget) {
			continue // Controllers are at work.
		}
		add("status.conditions[%s]=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	slices.Sort(obj.Values)
	for _, entry := range meta.ManagedFields {
		if entry.Manager == "kube-controller-manager" {
			continue
		}
		obj.Owners = append(obj.Owners, fmt.Sprintf("%s %s %s %s: %s", entry.Manager, entry.Operation, entry.APIVersion, entry.Subresource, entry.FieldsV1.GetRawString()))
	}
	slices.Sort(obj.Owners)
	return obj
}

// eventsOf reads a watch to its end.
func eventsOf(t *testing.T, body io.ReadCloser) (events []string) {
	t.Helper()
	defer body.Close()
	for decoder := json.NewDecoder(body); ; {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := decoder.Decode(&event); err != nil {
			if err != io.EOF {
				t.Errorf("a watch ended with %v", err)
			}
			return events
		}
		var kind metav1.TypeMeta
		mustRead(t, event.Object, &kind)
		if kind.Kind == "Status" {
			var status metav1.Status
			mustRead(t, event.Object, &status)
			events = append(events, fmt.Sprintf("%s %d %s", event.Type, status.Code, status.Reason))
			continue
		}
		if event.Type == string(watch.Bookmark) {
			var mark metav1.PartialObjectMetadata
			mustRead(t, event.Object, &mark)
			// How many there are is a matter of the moment.
			if text := fmt.Sprintf("%s %v", event.Type, mark.Annotations); len(events) == 0 || events[len(events)-1] != text {
				events = append(events, text)
			}
			continue
		}
		obj := objectOf(t, event.Object)
		events = append(events, fmt.Sprintf("%s %s %v deleted=%t", event.Type, obj.Name, obj.Values, obj.Deleted))
	}
}

// TestTheSimulatedAPIServerAnswersAsARealOne holds conversations with the API server in memory that simulations run on, and with a real one.
func TestTheSimulatedAPIServerAnswersAsARealOne(t *testing.T) {
	t.Parallel()
	for _, c := range conversations {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config, namespace := partner(t, c.alone, c.webhook)
			want := converse(t, config, namespace, c.asks)
			var got []answer
			synctest.Test(t, func(t *testing.T) { got = converse(t, model(t, namespace), namespace, c.asks) })
			if diff := cmp.Diff(printed(t, want), printed(t, got)); diff != "" {
				t.Errorf("the model answers otherwise (-real +model):\n%s", diff)
			}
		})
	}
}

// printed is for people.
func printed(t *testing.T, answers []answer) string {
	t.Helper()
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(answers); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}
