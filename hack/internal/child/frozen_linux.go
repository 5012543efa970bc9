// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// AwaitFrozen returns when all threads of a child that was sent SIGSTOP have stopped. Until then they may go on for a
// moment.
func AwaitFrozen(pid int) error {
	for {
		// Left waitable, and without the flag for an exit: that is for the code that reaps the child.
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for process %d to freeze: %w", pid, err)
		}
		return nil
	}
}
