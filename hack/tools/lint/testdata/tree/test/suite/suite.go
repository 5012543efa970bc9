// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"log"
	"time"
)

// Wait waits in the wrong way.
func Wait() {
	log.Println("waiting")
	time.Sleep(time.Second) // want sleep
}
