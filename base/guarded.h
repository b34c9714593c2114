#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace sluice {

// The current exception as a Status: 53200 for lack of memory, else XX000. Logged with `where`.
Status StatusOfException(std::string_view where);

// For the outermost function of a thread, a call or a process: runs `work` and turns an escaping
// exception into a Status, so that it ends a statement and not the process. `work` returns void, a
// Status or a Result; void becomes OK. Other code neither throws nor catches.
template <typename Work>
auto Guarded(std::string_view where, Work&& work) {
  using Given = std::invoke_result_t<Work>;
  using Answer = std::conditional_t<std::is_void_v<Given>, Status, Given>;
  try {
    if constexpr (std::is_void_v<Given>) {
      std::forward<Work>(work)();
      return Answer();
    } else {
      return Answer(std::forward<Work>(work)());
    }
  } catch (...) {
    return Answer(StatusOfException(where));
  }
}

}  // namespace sluice
