#include "models/kernels/kernels_elementwise_internal.h"
#include "models/kernels/kernels_gemm_internal.h"
#include "models/kernels/kernels_optimizer_internal.h"
#include "models/kernels/kernels_random_internal.h"
#include "models/kernels/kernels_table_internal.h"

namespace sluice::models {

const Kernels& BaselineKernels() {
  static constexpr Kernels kKernels = SLUICE_KERNEL_TABLE("SSE2");
  return kKernels;
}

}  // namespace sluice::models
