// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	_ "k8s.io/client-go/kubernetes" // want depguard:ownership

	_ "github.com/freehold-dev/freehold/apis/toolhive/v1beta1" // want depguard:ownership
	_ "github.com/freehold-dev/freehold/pkg/fieldmanager"
)
