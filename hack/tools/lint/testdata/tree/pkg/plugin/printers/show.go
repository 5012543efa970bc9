// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	_ "k8s.io/client-go/rest" // want depguard:plugin-printers

	_ "github.com/freehold-dev/freehold/pkg/fieldowners"
	_ "github.com/freehold-dev/freehold/pkg/status" // want depguard:plugin-printers
)
