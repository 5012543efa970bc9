// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/pkg/inventory"
)

// SaltKey is the key of a ConfigMap, besides that of its document, with which the same document has another name. Its value is a digest of the
// UIDs of the objects that other clients have made under names of the MCPServer's: nobody knows them, and so the name, beforehand.
const SaltKey = "salt"

// Existing is what is known of a ConfigMap that has the name of a child of the MCPServer's.
type Existing struct {
	Name string
	UID  types.UID
	// Usable reports that it is the MCPServer's and has the content that its name stands for.
	Usable bool
	// Salt is its value of SaltKey.
	Salt string
}

// Aside is Render for names that other clients may have taken: a document whose ConfigMap has another content gets another name. A name that
// the proxy's template has stays, whatever becomes of the others; so does one that was written and that the template does not have yet.
// isNew reports that a document has a name under which nothing exists, since its own is taken.
func Aside(in Input, opts Options, inTemplate []string, existing []Existing) (result *Result, isNew bool, err error) {
	result, err = Render(in, opts)
	if err != nil {
		return nil, false, err
	}
	in.salts = map[*inventory.Child]string{}
	for _, intent := range result.Intents {
		if config, ok := intent.Config.(*corev1ac.ConfigMapApplyConfiguration); ok && intent.Child.ByContent {
			salt, known := saltOf(intent, in.Server.Name, config.Data, inTemplate, existing)
			if isNew = isNew || !known; salt != "" {
				in.salts[intent.Child] = salt
			}
		}
	}
	if len(in.salts) > 0 {
		result, err = Render(in, opts)
	}
	return result, isNew, err
}

// saltOf returns the salt with which the document of an intent has a name that no other client has taken; empty for the name that it has
// without. known is false where nothing exists under the name with the salt.
func saltOf(intent Intent, server string, data map[string]string, inTemplate []string, existing []Existing) (salt string, known bool) {
	var named, others, taken []Existing
	for _, e := range existing {
		switch of, _ := intent.Child.Server(e.Name); {
		case of != server, !inventory.HasDigest(e.Name): // Under ToolHive's name, without a digest, nothing is written.
		case !e.Usable:
			taken = append(taken, e)
		case slices.Contains(inTemplate, e.Name):
			named = append(named, e)
		default:
			others = append(others, e)
		}
	}
	isTaken := slices.ContainsFunc(taken, func(e Existing) bool { return e.Name == intent.Name })
	if isTaken {
		named = append(named, others...)
	}
	for _, e := range named {
		if e.Name == intent.Name || e.Salt != "" && intent.Child.ContentName(server, salted(data, e.Salt)) == e.Name {
			return e.Salt, true
		}
	}
	if !isTaken {
		return "", true
	}
	return newSalt(taken), false
}

// newSalt returns a digest of the UIDs of ConfigMaps, in 32 characters.
func newSalt(taken []Existing) string {
	slices.SortFunc(taken, func(a, b Existing) int { return strings.Compare(string(a.UID), string(b.UID)) })
	hash := sha256.New()
	for _, e := range taken {
		fmt.Fprintln(hash, e.UID)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// salted returns the data of a ConfigMap with a salt.
func salted(data map[string]string, salt string) map[string]string {
	if salt == "" {
		return data
	}
	data = maps.Clone(data)
	data[SaltKey] = salt
	return data
}
