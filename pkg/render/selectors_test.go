// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
)

// TestServicesSelectThePodsThatToolHiveMade: a takeover restarts no pod, so the pods of ToolHive's Deployments and StatefulSets have to
// carry the labels by which Freehold's Services select. The recordings are of three of its releases.
func TestServicesSelectThePodsThatToolHiveMade(t *testing.T) {
	directories := []string{filepath.FromSlash("../../test/harness/testdata/toolhive")}
	if root := upstreamRoot(); root != "" {
		directories = append(directories, filepath.Join(root, "golden"), filepath.Join(root, "golden-0.62"))
	}
	for _, directory := range directories {
		found := map[string]int{}
		err := filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
				document, err := reader.Read()
				if errors.Is(err, io.EOF) {
					return nil
				}
				var workload appsv1.Deployment // A StatefulSet has its name and its template at the same place.
				if err != nil || yaml.Unmarshal(document, &workload) != nil {
					return err
				}
				if filepath.Base(path) == "deployment.yaml" {
					workload.Kind = "Deployment" // The oldest recordings leave it out.
				}
				selector := map[string]map[string]string{
					"Deployment": ProxySelector(workload.Name), "StatefulSet": backendServiceSelector(workload.Name),
				}[workload.Kind]
				if selector == nil {
					continue
				}
				found[workload.Kind]++
				if pods := labels.Set(workload.Spec.Template.Labels); !labels.SelectorFromSet(selector).Matches(pods) {
					t.Errorf("%s: the Service selects by %v, and the pods have %v", path, selector, pods)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if found["Deployment"] == 0 || found["StatefulSet"] == 0 {
			t.Errorf("%s has %v", directory, found)
		}
	}
}

// TestServicesSelectThePodsOfEachTemplate: labels of the user's pod template do not hide the pods of Freehold's own workloads.
func TestServicesSelectThePodsOfEachTemplate(t *testing.T) {
	result := renderServer(t, withPodTemplate(`{"metadata":{"labels":{"app":"mine","toolhive-name":"mine","team":"a"}}}`), func(server *v1beta1.MCPServer) {
		server.Spec.ResourceOverrides = &v1beta1.ResourceOverrides{ProxyDeployment: &v1beta1.ProxyDeploymentOverrides{
			PodTemplateMetadataOverrides: &v1beta1.ResourceMetadataOverrides{Labels: map[string]string{"app": "mine", "toolhive-name": "mine"}},
		}}
	})
	for _, pair := range []struct{ selector, pods map[string]string }{
		{ProxySelector("fetch"), deploymentOf(t, result).Spec.Template.Labels},
		{backendServiceSelector("fetch"), statefulSetOf(t, result).Spec.Template.Labels},
	} {
		if !labels.SelectorFromSet(pair.selector).Matches(labels.Set(pair.pods)) {
			t.Errorf("the Service selects by %v, and the pods have %v", pair.selector, pair.pods)
		}
	}
}
