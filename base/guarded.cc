#include "base/guarded.h"

#include <fmt/core.h>

#include <exception>
#include <new>

#include "base/log.h"

namespace sluice {

Status StatusOfException(std::string_view where) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    log::Error("{}: out of memory", where);
    return ResourceExhausted(fmt::format("{}: out of memory", where))
        .SqlState("53200")
        .Hint("smaller batches, lists or layers need less of it");
  } catch (const std::exception& error) {
    log::Error("{}: {}", where, error.what());
    return Internal(fmt::format("{}: {}", where, error.what()));
  } catch (...) {
    log::Error("{}: an exception of an unknown type", where);
    return Internal(fmt::format("{}: an exception of an unknown type", where));
  }
}

}  // namespace sluice
