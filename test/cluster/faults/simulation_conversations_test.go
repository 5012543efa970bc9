// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// webhook is the name of a webhook, and denials are what it says about ConfigMaps, by their names.
const webhook = "configmaps.example.com"

var denials = map[string]metav1.Status{
	"denied":      {},
	"missing":     {Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound},
	"contested":   {Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "no such luck"},
	"gone":        {Code: http.StatusGone, Reason: metav1.StatusReasonGone, Message: "no such luck"},
	"large":       {Code: http.StatusRequestEntityTooLarge, Message: "no such luck"},
	"busy":        {Code: http.StatusTooManyRequests, Message: "no such luck", Details: &metav1.StatusDetails{RetryAfterSeconds: 3600}},
	"broken":      {Code: http.StatusInternalServerError, Message: "no such luck", Details: &metav1.StatusDetails{RetryAfterSeconds: 3600}},
	"unavailable": {Code: http.StatusServiceUnavailable, Message: "no such luck", Details: &metav1.StatusDetails{RetryAfterSeconds: 3600}},
	"fine":        {Code: http.StatusOK, Status: metav1.StatusSuccess, Message: "no such luck"},
}

// slowness is how long the webhook takes to answer about ConfigMaps, by their names. The API server waits for ten seconds.
var slowness = map[string]time.Duration{"late": 5 * time.Second, "silent": 12 * time.Second}

// conversations are what a model of an API server has to know.
var conversations = []struct {
	name string
	asks []ask
	// webhook is set where denials and slowness count.
	webhook bool
	// alone is set where no garbage collector may take part.
	alone bool
}{
	{"0 through the subresource scale leaves the number without an owner, another number names its client", []ask{
		applying("a", "deployments/web", deployment(`"replicas":3`)),
		getting("deployments/web/scale"),
		merging("kubectl", "deployments/web/scale", `{"spec":{"replicas":5}}`),
		getting("deployments/web"),
		applying("a", "deployments/web", deployment(`"replicas":3`)),
		merging("kubectl", "deployments/web/scale", `{"spec":{"replicas":0}}`),
		getting("deployments/web"),
		merging("kubectl", "deployments/web/scale", `{"spec":{"replicas":4}}`),
		getting("deployments/web"),
		sending(http.MethodPut, "deployments/web/scale?fieldManager=put", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"$NS"},"spec":{"replicas":2}}`),
		sending(http.MethodPut, "deployments/web/scale?fieldManager=put", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"$NS","resourceVersion":"1"},"spec":{"replicas":1}}`),
		getting("deployments/web"),
		getting("deployments/none/scale"),
		merging("kubectl", "deployments/none/scale", `{"spec":{"replicas":4}}`),
	}, false, false},
	{"several own the number, and 0 takes it from all of them", []ask{
		applying("a", "deployments/web", deployment(`"replicas":3`)),
		applying("b", "deployments/web", deployment(`"replicas":3`)),
		merging("kubectl", "deployments/web/scale", `{"spec":{"replicas":0}}`),
		getting("deployments/web"),
		applying("a", "deployments/web", deployment(`"replicas":3`)),
	}, false, false},
	{"an apply to the subresource scale conflicts as one to the object does", []ask{
		applying("a", "deployments/web", deployment(`"replicas":3`)),
		applying("scaler", "deployments/web/scale", scale(`"replicas":5`)),
		applying("scaler", "deployments/web/scale", scale(`"replicas":3`)),
		applying("scaler", "deployments/web/scale", scale(``)),
		getting("deployments/web"),
		applying("scaler&force=true", "deployments/web/scale", scale(`"replicas":0`)),
		getting("deployments/web"),
	}, false, false},
	{"zero values in patches of the object", []ask{
		applying("a", "deployments/web", deployment(`"replicas":3,"paused":true,"minReadySeconds":5`)),
		merging("kubectl", "deployments/web", `{"spec":{"replicas":0}}`),
		merging("kubectl", "deployments/web", `{"spec":{"paused":false}}`),
		merging("kubectl", "deployments/web", `{"spec":{"minReadySeconds":0}}`),
		applying("a", "deployments/web", deployment(`"replicas":3,"paused":true,"minReadySeconds":5`)),
		applying("b", "deployments/web", deployment(`"replicas":0,"paused":false,"minReadySeconds":0`)),
		applying("a", "configmaps/web", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","labels":{}},"data":{"key":"","other":"x"}}`),
		merging("kubectl", "configmaps/web", `{"data":{"other":""}}`),
		merging("kubectl", "configmaps/web", `{"metadata":{"annotations":{"a":""}}}`),
		merging("kubectl", "configmaps/web", `{"metadata":{"annotations":{"a":null}}}`),
		merging("kubectl", "configmaps/web", `{"data":{}}`),
		merging("kubectl", "configmaps/web", `{"data":null}`),
	}, false, false},
	{"a list not older than a version to come blocks until it times out", []ask{
		applying("a", "configmaps/web", configMap("web", "1")),
		getting("configmaps?labelSelector=app=web&resourceVersion=$LATER"),
		getting("configmaps?labelSelector=app=web&resourceVersion=$LATER&resourceVersionMatch=Exact"),
		getting("configmaps?labelSelector=app=web&resourceVersion=$LATER&limit=1"),
		getting("configmaps/web?resourceVersion=$LATER"),
		getting("configmaps?labelSelector=app=web&resourceVersion=0"),
		getting("configmaps/web?resourceVersion=0"),
		getting("configmaps?labelSelector=app=web&resourceVersion=nonsense"),
	}, false, false},
	{"a watch from a version to come is silent", []ask{
		applying("a", "configmaps/web", configMap("web", "1")),
		getting("configmaps?watch=true&timeoutSeconds=10&resourceVersion=$LATER"),
		getting("configmaps?watch=true&timeoutSeconds=10&resourceVersion=$LATER&allowWatchBookmarks=true"),
		getting("configmaps?watch=true&timeoutSeconds=10&resourceVersion=$LATER&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"),
		getting("configmaps?watch=true&timeoutSeconds=10&resourceVersion=$VERSION&fieldSelector=metadata.name=web"),
		getting("configmaps?watch=true&timeoutSeconds=10&fieldSelector=metadata.name=web"),
		merging("a", "configmaps/web", `{"data":{"key":"2"}}`),
	}, false, false},
	{"a watch ends when its time is over, after a bookmark", []ask{
		applying("a", "secrets/web", secret("web")),
		toItsEnd(getting("secrets?watch=true&timeoutSeconds=1&resourceVersion=$VERSION&allowWatchBookmarks=true")),
		getting("secrets?watch=true&timeoutSeconds=10&resourceVersion=$VERSION&allowWatchBookmarks=true"),
		getting("secrets?watch=true&timeoutSeconds=10&resourceVersion=$VERSION"),
		applying("a", "secrets/another", secret("another")),
	}, false, false},
	{"a second deletion with another propagation policy replaces the finalizer of the first", []ask{
		applying("a", "deployments/web", held(`"example.com/held"`)),
		deleting("deployments/web", "Foreground"),
		getting("deployments/web"),
		deleting("deployments/web", "Orphan"),
		getting("deployments/web"),
		deleting("deployments/web", ""),
		getting("deployments/web"),
		deleting("deployments/web", "Background"),
		getting("deployments/web"),
		deleting("deployments/web", "Foreground"),
		getting("deployments/web"),
		applying("a", "deployments/web", held(``)),
	}, false, true},
	{"a list has a limit, and continues in the state in which it began", []ask{
		applying("a", "secrets/x1", secret("x1")),
		applying("a", "secrets/x2", secret("x2")),
		applying("a", "secrets/x3", secret("x3")),
		getting("secrets?limit=2&labelSelector=app=web"),
		sending(http.MethodDelete, "secrets/x3", ""),
		applying("a", "secrets/x4", secret("x4")),
		getting("secrets?limit=2&labelSelector=app=web&continue=$CONTINUE"),
		getting("secrets?limit=2"),
		getting("secrets?limit=1&continue=$CONTINUE"),
		getting("secrets?limit=1&resourceVersion=$VERSION&continue=$CONTINUE"),
		getting("secrets?limit=2&resourceVersion=0"),
		getting("secrets?limit=2&resourceVersion=$VERSION&resourceVersionMatch=Exact"),
		getting("secrets?limit=2&resourceVersion=$VERSION&resourceVersionMatch=NotOlderThan"),
		getting("secrets?limit=2&continue=nonsense"),
	}, false, false},
	{"an eviction of a running pod is two versions", []ask{
		sending(http.MethodPost, "pods?fieldManager=a", pod("running")),
		merging("kubelet", "pods/running/status", `{"status":{"phase":"Running"}}`),
		getting("pods?watch=true&timeoutSeconds=10&resourceVersion=$VERSION&fieldSelector=metadata.name=running"),
		sending(http.MethodPost, "pods/running/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"running"}}`),
		unheard(ask{verb: http.MethodDelete, path: "pods/running", body: `{"gracePeriodSeconds":0}`}), // A node does so too.
	}, false, false},
	{"nothing is created in a namespace that does not exist or ends", []ask{
		sending(http.MethodPost, "/api/v1/namespaces/$NS-missing/configmaps", configMap("web", "1")),
		applying("a", "/api/v1/namespaces/$NS-missing/configmaps/web", configMap("web", "1")),
		getting("/api/v1/namespaces/$NS-missing/configmaps"),
		getting("/api/v1/namespaces/$NS-missing/configmaps/web"),
		merging("a", "/api/v1/namespaces/$NS-missing/configmaps/web", `{}`),
		sending(http.MethodDelete, "/api/v1/namespaces/$NS-missing/configmaps/web", ""),
		sending(http.MethodPost, "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"$NS-ends","labels":{"kubernetes.io/metadata.name":"$NS-ends"},"finalizers":["example.com/held"]}}`),
		applying("a", "/api/v1/namespaces/$NS-ends/configmaps/web",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","finalizers":["example.com/held"]}}`),
		sending(http.MethodDelete, "/api/v1/namespaces/$NS-ends", ""),
		sending(http.MethodPost, "/api/v1/namespaces/$NS-ends/configmaps", configMap("other", "1")),
		applying("a", "/api/v1/namespaces/$NS-ends/configmaps/other", configMap("other", "1")),
		merging("a", "/api/v1/namespaces/$NS-ends/configmaps/web", `{"data":{"key":"2"}}`),
		merging("a", "/api/v1/namespaces/$NS-ends/configmaps/web", `{"metadata":{"finalizers":null}}`),
		merging("a", "/api/v1/namespaces/$NS-ends", `{"metadata":{"finalizers":null}}`),
	}, false, false},
	{"an undeclared field of an apply is an error without a reason", []ask{
		applying("a", "deployments/web", deployment(`"nonsense":1`)),
		applying("a", "deployments/web", deployment(`"replicas":"one"`)),
		applying("a", "deployments/web", deployment(`"replicas":1`)),
		applying("a", "deployments/web", deployment(`"nonsense":1`)),
	}, false, false},
	{"selectors of shards", []ask{
		applying("a", "configmaps/x1", configMap("x1", "1")),
		applying("a", "configmaps/x2", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x2","labels":{"shard":"1"}}}`),
		getting("configmaps?labelSelector=shard"),
		getting("configmaps?labelSelector=%21shard,app=web"),
		getting("configmaps?labelSelector=shard+in+(1,2)"),
		getting("configmaps?labelSelector=shard+notin+(2),app"),
		getting("configmaps?labelSelector=shard%3D%3D%3D1"),
		getting("configmaps?fieldSelector=spec.nonsense=1"),
	}, false, false},
	{"a webhook's code and the time to wait are passed on as they are", []ask{
		applying("a", "configmaps/denied", configMap("denied", "1")),
		applying("a", "configmaps/missing", configMap("missing", "1")),
		applying("a", "configmaps/contested", configMap("contested", "1")),
		applying("a", "configmaps/gone", configMap("gone", "1")),
		applying("a", "configmaps/large", configMap("large", "1")),
		applying("a", "configmaps/busy", configMap("busy", "1")),
		applying("a", "configmaps/broken", configMap("broken", "1")),
		applying("a", "configmaps/unavailable", configMap("unavailable", "1")),
		applying("a", "configmaps/fine", configMap("fine", "1")),
		applying("a", "configmaps/web", configMap("web", "1")),
	}, true, false},
	{"a webhook that is slow is waited for, but not where the API server refuses a request itself", []ask{
		applying("a", "configmaps/late", configMap("late", "1")),
		applying("b", "configmaps/late", configMap("late", "2")),
		applying("a", "configmaps/late", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late","resourceVersion":"1"},"data":{"key":"2"}}`),
		applying("a", "configmaps/late", configMap("late", "1")),
		merging("kubectl", "configmaps/late", `{"data":{"key":"2"}}`),
		applying("a", "configmaps/silent", configMap("silent", "1")),
		getting("configmaps/silent"),
	}, true, false},
	{"what is not served is no Status", []ask{
		getting("/apis/example.com/v1/namespaces/$NS/things"),
		getting("/apis/example.com/v1"),
		getting("/apis/apps/v1/namespaces/$NS/things"),
		getting("/apis/apps/v1/namespaces/$NS/things/web"),
		sending(http.MethodPost, "/apis/apps/v1/namespaces/$NS/things", "{}"),
		applying("a", "/apis/apps/v1/namespaces/$NS/things/web", "{}"),
		sending(http.MethodDelete, "/apis/apps/v1/namespaces/$NS/things/web", ""),
		getting("/nonsense"),
		getting("/apis/toolhive.stacklok.dev/v1beta1/namespaces/$NS/things"),
	}, false, false},
}

func applying(manager, path, body string) ask {
	return ask{verb: http.MethodPatch, path: path + "?fieldManager=" + manager, media: types.ApplyYAMLPatchType, body: body}
}

func merging(manager, path, body string) ask {
	return ask{verb: http.MethodPatch, path: path + "?fieldManager=" + manager, media: types.MergePatchType, body: body}
}

func getting(path string) ask { return sending(http.MethodGet, path, "") }

func sending(verb, path, body string) ask { return ask{verb: verb, path: path, body: body} }

func unheard(a ask) ask {
	a.unheard = true
	return a
}

func toItsEnd(a ask) ask {
	a.toItsEnd = true
	return a
}

func deleting(path, policy string) ask {
	body := ""
	if policy != "" {
		body = fmt.Sprintf(`{"propagationPolicy":%q}`, policy)
	}
	return sending(http.MethodDelete, path, body)
}

// deployment is the body of an apply, whose spec has more fields in front.
func deployment(fields string) string { return workload(`"name":"web"`, fields+`,`) }

// held is the body of an apply with finalizers.
func held(finalizers string) string {
	return workload(`"name":"web","finalizers":[`+finalizers+`]`, `"replicas":1,`)
}

func workload(metadata, fields string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{` + metadata + `},"spec":{` + fields +
		`"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web"}]}}}}`
}

func scale(fields string) string {
	return `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":{` + fields + `}}`
}

func configMap(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"web"}},"data":{"key":%q}}`, name, value)
}

// pod is a pod on a node that does not exist, with all that has a default.
func pod(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{
		"nodeName":"none","automountServiceAccountToken":false,"dnsPolicy":"Default","enableServiceLinks":false,"restartPolicy":"Never",
		"schedulerName":"none","securityContext":{},"terminationGracePeriodSeconds":30,
		"containers":[{"name":"web","image":"web","imagePullPolicy":"Never","resources":{},
		"terminationMessagePath":"/dev/null","terminationMessagePolicy":"File"}]}}`, name)
}

func secret(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"labels":{"app":"web"}}}`, name)
}
