// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	_ "k8s.io/apimachinery/pkg/runtime/schema"
	_ "k8s.io/client-go/rest" // want depguard:fieldmanager

	_ "github.com/freehold-dev/freehold/apis/toolhive/v1beta1" // want depguard:fieldmanager
)
