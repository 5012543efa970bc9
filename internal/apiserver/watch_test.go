// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// inBubble runs a test that deadlocks when an event does not come.
func inBubble(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFixture(t)) })
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}, Data: map[string]string{"key": value},
	}
}

// edit changes a ConfigMap.
func (f *fixture) edit(name string, edit func(*corev1.ConfigMap)) *corev1.ConfigMap {
	f.t.Helper()
	found := must(f.configMaps.Get(f.t.Context(), name, metav1.GetOptions{}))(f.t)
	edit(found)
	return must(f.configMaps.Update(f.t.Context(), found, metav1.UpdateOptions{}))(f.t)
}

// expectEvents fails the test unless these, and no others, come to a watch now.
func expectEvents(t *testing.T, w watch.Interface, why string, want ...string) {
	t.Helper()
	var got []string
	for {
		synctest.Wait()
		select {
		case event, open := <-w.ResultChan():
			if !open {
				got = append(got, "end")
				break
			}
			switch obj := event.Object.(type) {
			case *corev1.ConfigMap:
				got = append(got, fmt.Sprintf("%s %s=%s@%s", event.Type, obj.Name, obj.Data["key"], obj.ResourceVersion))
				if event.Type == watch.Bookmark && why == "at first" && obj.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
					t.Errorf("annotations %v of a bookmark", obj.Annotations)
				}
			case *metav1.Status:
				got = append(got, fmt.Sprintf("%s %d", event.Type, obj.Code))
			}
			continue
		default:
		}
		break
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: events (-want +got):\n%s", why, diff)
	}
}

func TestWatchBeginsAfterAVersion(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		first := put(f, configMap("a", "1"))
		list := must(f.configMaps.List(t.Context(), metav1.ListOptions{}))(t)
		if len(list.Items) != 1 || list.ResourceVersion != first.ResourceVersion {
			t.Fatalf("%d items at %s", len(list.Items), list.ResourceVersion)
		}
		second := f.edit("a", func(c *corev1.ConfigMap) { c.Data["key"] = "2" })
		w := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion}))(t)
		defer w.Stop()
		expectEvents(t, w, "since the list", "MODIFIED a=2@"+second.ResourceVersion)
		put(f, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "of-another-kind"}})
		third := put(f, configMap("b", "1"))
		if err := f.configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expectEvents(t, w, "what is new", "ADDED b=1@"+third.ResourceVersion, fmt.Sprint("DELETED a=2@", f.Version()))
	})
}

func TestVersionsExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		first := put(f, configMap("a", "1"))
		second := f.edit("a", func(c *corev1.ConfigMap) { c.Data["key"] = "2" })
		f.Compact()
		old := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion}))(t)
		defer old.Stop()
		expectEvents(t, old, "a version before those that are remembered", "ERROR 410", "end")
		w := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: second.ResourceVersion}))(t)
		defer w.Stop()
		third := f.edit("a", func(c *corev1.ConfigMap) { c.Data["key"] = "3" })
		expectEvents(t, w, "the newest version", "MODIFIED a=3@"+third.ResourceVersion)
	})
}

func TestAWatchThatListsFirstSaysWhenThatIsAll(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		first, second := put(f, configMap("b", "1")), put(f, configMap("a", "1"))
		w := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
		}))(t)
		defer w.Stop()
		expectEvents(t, w, "at first", "ADDED a=1@"+second.ResourceVersion, "ADDED b=1@"+first.ResourceVersion, "BOOKMARK =@"+second.ResourceVersion)
		third := put(f, configMap("c", "1"))
		expectEvents(t, w, "afterwards", "ADDED c=1@"+third.ResourceVersion)
	})
}

func TestAWatchEndsWhenItsTimeIsOverAfterABookmark(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.TimeOut = true
		last := put(f, configMap("a", "1"))
		const seconds = 10
		w := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{
			ResourceVersion: last.ResourceVersion, TimeoutSeconds: new(int64(seconds)), AllowWatchBookmarks: true,
		}))(t)
		defer w.Stop()
		<-time.After(seconds*time.Second - lastBookmark)
		expectEvents(t, w, "before its end", "BOOKMARK =@"+last.ResourceVersion)
		<-time.After(lastBookmark)
		expectEvents(t, w, "its time is over", "end")
	})
}

// To a watch that selects by labels an object comes with its labels and goes with them: as it was, and with the version at
// which they went.
func TestAnObjectComesToASelectedWatchAndGoesWithItsLabels(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		w := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=web"}))(t)
		defer w.Stop()
		other := configMap("other", "1")
		other.Labels = nil
		put(f, other)
		first := put(f, configMap("a", "1"))
		expectEvents(t, w, "it came", "ADDED a=1@"+first.ResourceVersion)
		left := f.edit("a", func(c *corev1.ConfigMap) { c.Labels, c.Data["key"] = nil, "2" })
		expectEvents(t, w, "it lost its label", "DELETED a=1@"+left.ResourceVersion)
		f.edit("a", func(c *corev1.ConfigMap) { c.Data["key"] = "3" })
		expectEvents(t, w, "nobody selects it")
		back := f.edit("a", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"app": "web"} })
		expectEvents(t, w, "it has its label again", "ADDED a=3@"+back.ResourceVersion)

		named := must(f.configMaps.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=other"}))(t)
		if len(named.Items) != 1 || named.Items[0].Name != "other" {
			t.Errorf("%d items of one name", len(named.Items))
		}
	})
}

func TestEventsAreHeldAndDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		w := must(f.connect(nil, true).CoreV1().ConfigMaps("shop").Watch(t.Context(), metav1.ListOptions{}))(t)
		defer w.Stop()
		first, second, third := put(f, configMap("a", "1")), put(f, configMap("b", "1")), put(f, configMap("c", "1"))
		held := f.Watches()[0]
		if event, namespace, name := held.Next(); held.Pending() != 3 || event != watch.Added || namespace != "shop" || name != "a" {
			t.Errorf("%d events, the next is %s %s/%s", held.Pending(), event, namespace, name)
		}
		expectEvents(t, w, "all are held")
		held.Deliver()
		expectEvents(t, w, "one was delivered", "ADDED a=1@"+first.ResourceVersion)
		held.Hold(false)
		expectEvents(t, w, "all were let go of", "ADDED b=1@"+second.ResourceVersion, "ADDED c=1@"+third.ResourceVersion)
		held.Hold(true)
		put(f, configMap("d", "1"))
		held.Expire()
		expectEvents(t, w, "its version expired", "ERROR 410", "end")
		if n := len(f.Watches()); n != 0 {
			t.Errorf("%d watches are open", n)
		}
	})
}

// A watch that is cut ends, and one that begins where it was misses nothing.
func TestWatchesAreCut(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		first := put(f, configMap("a", "1"))
		w := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion}))(t)
		f.CutWatches()
		second := put(f, configMap("b", "1"))
		expectEvents(t, w, "it was cut", "end")
		again := must(f.configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion}))(t)
		defer again.Stop()
		expectEvents(t, again, "it began again", "ADDED b=1@"+second.ResourceVersion)
	})
}

func TestAnInterceptorAnswersBeforeOrAfterARequest(t *testing.T) {
	f := newFixture(t)
	lost := errors.New("the connection broke")
	var asked []string
	client := f.connect(func(r *Request, serve func() Answer) Answer {
		asked = append(asked, r.String())
		switch r.Name {
		case "refused":
			return Refuse(apierrors.NewForbidden(r.Kind.GroupResource(), r.Name, nil))
		case "lost":
			serve()
			return Answer{Broken: lost}
		}
		return serve()
	}, false).CoreV1().ConfigMaps("shop")
	_, err := client.Patch(t.Context(), "refused", "application/apply-patch+yaml", []byte(`{"apiVersion":"v1","kind":"ConfigMap"}`), metav1.PatchOptions{FieldManager: "a"})
	expectCode(t, err, 403, "refused")
	_, err = client.Patch(t.Context(), "lost", "application/apply-patch+yaml",
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lost"}}`), metav1.PatchOptions{FieldManager: "a"})
	if !errors.Is(err, lost) {
		t.Errorf("the answer is %v", err)
	}
	if f.exists("ConfigMap", "refused") || !f.exists("ConfigMap", "lost") {
		t.Error("what was refused is there, or what was answered too late is not")
	}
	if diff := cmp.Diff([]string{"apply configmaps shop/refused a", "apply configmaps shop/lost a"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
