#pragma once

#include "base/status.h"

namespace sluice {

// The code of a number from elsewhere; kUnknown for one that is no error's.
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
