#pragma once

#include "base/status.h"

namespace sluice {

// The code for a number from elsewhere; kUnknown if it is not an error code.
inline Code ErrorCode(int number) {
  for (Code code : {Code::kCancelled, Code::kInvalidArgument, Code::kDeadlineExceeded,
                    Code::kNotFound, Code::kAlreadyExists, Code::kPermissionDenied,
                    Code::kResourceExhausted, Code::kFailedPrecondition, Code::kAborted,
                    Code::kUnimplemented, Code::kInternal, Code::kUnavailable}) {
    if (static_cast<int>(code) == number) {
      return code;
    }
  }
  return Code::kUnknown;
}

}  // namespace sluice
