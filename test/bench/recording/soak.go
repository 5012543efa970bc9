// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

// Soak is what a run of the soak leaves on disk.
type Soak struct {
	Machine Machine
	// Commit is the checkout that Freehold was built from.
	Commit  string
	Servers int
	Seed    uint64
	// Churn is how long the random changes lasted, and Took is how long the whole run did.
	Churn, Took float64
	// Remark is what else a reader must know of the run, in sentences.
	Remark  string `json:",omitempty"`
	Results []Result
}

// Result is something that a soak found.
type Result struct {
	What, Found string
	// Failed is set where that is not as it should be.
	Failed bool `json:",omitempty"`
}

// ReadSoak reads what Soak.Write wrote.
func ReadSoak(path string) (*Soak, error) { return read[Soak](path) }

// Write writes a soak in place of the one that the file has.
func (s *Soak) Write(path string) error {
	written := *s
	written.Churn, written.Took = round(s.Churn), round(s.Took)
	return writeFile(path, written)
}
