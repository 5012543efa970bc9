// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	_ "k8s.io/client-go/rest" // want depguard:managers

	_ "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	_ "github.com/freehold-dev/freehold/pkg/fieldmanager"
	_ "github.com/freehold-dev/freehold/pkg/ownership" // want depguard:managers
)
