// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/freehold-dev/freehold/pkg/inventory"
)

// SaltKey is the key of a ConfigMap, besides that of its document, with which the same document has another name. Its value is the UID of the
// object that another client has made under the name without it, so that nobody knows the name beforehand.
const SaltKey = "salt"

// Existing is what is known of a ConfigMap that exists.
type Existing struct {
	UID types.UID
	// Usable reports that it is the MCPServer's and has the content that its name stands for.
	Usable bool
	// Salt is its value of SaltKey.
	Salt string
}

// mostAside is how many objects of other clients one pass avoids for a document. A client that takes a name needs the UID in its salt, which it
// learns only from the object that was there before.
const mostAside = 8

// Aside is Render for names that another client may have taken: a document whose ConfigMap has another content is in one of another name. The
// one that the proxy's template names stays, whatever becomes of the others. existing returns what is known of a ConfigMap; nil for one
// that does not exist. fresh are the names that are new and had to avoid an object of another client, and avoided are those of such objects.
func Aside(in Input, opts Options, inTemplate []string, existing func(name string) *Existing) (result *Result, fresh, avoided []string, err error) {
	in.salts = map[*inventory.Child]string{}
	for range mostAside {
		if result, err = Render(in, opts); err != nil {
			return nil, nil, nil, err
		}
		before := maps.Clone(in.salts)
		fresh = nil
		for _, intent := range result.Intents {
			config, ok := intent.Config.(*corev1ac.ConfigMapApplyConfiguration)
			if !ok || !intent.Child.ByContent {
				continue
			}
			live := existing(intent.Name)
			if live != nil && live.Usable && slices.Contains(inTemplate, intent.Name) {
				continue // As a rule the template names it already, and nothing needs to be hashed again.
			}
			if live != nil && !live.Usable && !slices.Contains(avoided, intent.Name) {
				avoided = append(avoided, intent.Name)
			}
			switch salt, found := saltInTemplate(intent, in.Server.Name, config.Data, inTemplate, existing); {
			case found:
				in.salts[intent.Child] = salt
			case live != nil && !live.Usable:
				if in.salts[intent.Child] != "" || salt == "" {
					salt = string(live.UID)
				}
				in.salts[intent.Child] = salt
			case live == nil && in.salts[intent.Child] != "":
				fresh = append(fresh, intent.Name)
			}
		}
		if maps.Equal(before, in.salts) {
			break
		}
	}
	return result, fresh, avoided, nil
}

// saltInTemplate returns the salt of the ConfigMap that the proxy's template names and that has the document of an intent, if there is one.
// Otherwise the salt is the UID of the object of another client that the template names: those that were avoided before may be many.
func saltInTemplate(
	intent Intent, server string, data map[string]string, inTemplate []string, existing func(name string) *Existing,
) (salt string, found bool) {
	for _, name := range inTemplate {
		of, _ := intent.Child.Server(name)
		switch named := existing(name); {
		case named == nil || of != server:
		case !named.Usable:
			salt = string(named.UID)
		case intent.Child.ContentName(server, salted(data, named.Salt)) == name:
			return named.Salt, true
		}
	}
	return salt, false
}

// salted returns the data of a ConfigMap with a salt; an empty one is none.
func salted(data map[string]string, salt string) map[string]string {
	data = maps.Clone(data)
	delete(data, SaltKey)
	if salt != "" {
		data[SaltKey] = salt
	}
	return data
}
