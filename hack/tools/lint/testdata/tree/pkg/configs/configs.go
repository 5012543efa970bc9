// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	_ "k8s.io/client-go/kubernetes" // want depguard:configs

	_ "github.com/freehold-dev/freehold/apis/toolhive/v1beta1"
	_ "github.com/freehold-dev/freehold/pkg/authserver"
	_ "github.com/freehold-dev/freehold/pkg/render" // want depguard:configs
)
