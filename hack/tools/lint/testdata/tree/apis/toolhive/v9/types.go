// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v9

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/client-go/rest" // want depguard:apis

	_ "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	_ "github.com/freehold-dev/freehold/pkg/fieldmanager" // want depguard:apis
)

// Thing shows what an API type may import.
type Thing struct {
	metav1.TypeMeta
}
