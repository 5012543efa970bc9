// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// UnmarshalJSON implements json.Unmarshaler. The CRD in a cluster may be newer than this type. A decoder drops the fields
// that a type does not have; those of a spec are recorded instead, since one of them could be what protects the server.
// A value of another type than expected is recorded as well, not returned: an error would make the whole list unreadable,
// and with it every other MCPServer.
func (s *MCPServerSpec) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	type plain MCPServerSpec // without this method
	s.UnknownFields, s.Malformed = nil, ""
	strict, err := kjson.UnmarshalStrict(data, (*plain)(s))
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field != "" {
		s.Malformed = fmt.Sprintf("%s is of type %s, not %s", mismatch.Field, mismatch.Value, mismatch.Type)
	} else if err != nil {
		s.Malformed = err.Error()
	}
	for _, problem := range strict {
		if field, ok := errors.AsType[kjson.FieldError](problem); ok {
			s.UnknownFields = append(s.UnknownFields, field.FieldPath())
		}
	}
	return nil
}
