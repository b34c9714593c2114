#include "elastic/storage/background.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

namespace sluice::elastic {
namespace {

constexpr int kNice = 10;  // Linux weighs such a thread 110 to 1024

}  // namespace

void LowerPriority() {
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice) != 0) {
    log::Debug("a background thread keeps its priority");
  }
}

}  // namespace sluice::elastic
