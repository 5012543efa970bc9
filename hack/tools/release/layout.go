// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// image is the image that a layout holds under a tag.
type image struct {
	// digest of the index.
	digest    string
	platforms []platformImage
}

// platformImage is the image for one platform.
type platformImage struct {
	platform
	digest string
}

// index is an OCI image index, as far as it is read here.
type index struct {
	Manifests []struct {
		Digest   string `json:"digest"`
		Platform struct {
			OS           string `json:"os"`
			Architecture string `json:"architecture"`
		} `json:"platform"`
		Annotations map[string]string `json:"annotations"`
	} `json:"manifests"`
}

// readImage reads which images an OCI layout holds. It has to hold one index, under the tag.
func readImage(layout, tag string) (image, error) {
	top, err := readIndex(filepath.Join(layout, "index.json"))
	if err != nil {
		return image{}, err
	}
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != tag {
		return image{}, fmt.Errorf("%s: want one image with the tag %s, it has %+v", layout, tag, top.Manifests)
	}
	found := image{digest: top.Manifests[0].Digest}
	algorithm, hash, _ := strings.Cut(found.digest, ":")
	inner, err := readIndex(filepath.Join(layout, "blobs", algorithm, hash))
	if err != nil {
		return image{}, err
	}
	for _, manifest := range inner.Manifests {
		found.platforms = append(found.platforms, platformImage{
			platform{manifest.Platform.OS, manifest.Platform.Architecture}, manifest.Digest,
		})
	}
	if len(found.platforms) == 0 {
		return image{}, fmt.Errorf("%s: the index %s has no image", layout, found.digest)
	}
	return found, nil
}

func readIndex(path string) (index, error) {
	var i index
	data, err := os.ReadFile(path)
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(data, &i); err != nil {
		return i, fmt.Errorf("%s: %w", path, err)
	}
	return i, nil
}
