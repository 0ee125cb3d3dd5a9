// Attention of the CPU backend: splits queries and keys into tasks, runs the group kernels on the
// thread pool and merges groups in position order. Invariant (the law): the groups a query sees,
// and the order in which they are merged, depend on its own key range alone; tasks only decide who
// computes what.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/base/shared_work.h"
#include "octet/base/thread_pool.h"
#include "octet/kernels/cpu/scratch.h"
#include "octet/kernels/cpu/vector_kernels.h"
#include "octet/kernels/ops.h"

namespace octet::cpu {

class CpuAttend {
 public:
  /// Both must outlive this object.
  CpuAttend(const VectorKernels& kernels, ThreadPool& pool);

  /// As Ops::attend.
  void attend(
      ConstRows q, int heads, float scale, std::span<const AttendSegment> segments, Rows out
  );

  int64_t scratch_bytes() const;

 private:
  /// Consecutive rows of one segment with all query heads of one kv head: what one pass over keys
  /// serves.
  struct Unit {
    const AttendSegment* segment = nullptr;
    int kv_head = 0;
    int64_t first_row = 0;  // in the segment
    int64_t rows = 0;
    int64_t heads = 0;  // query heads of a kv head
    int64_t first_group = 0;
    int64_t last_group = 0;      // one past
    int64_t missing_groups = 0;  // of the present wave, while units are split

    int64_t queries() const { return rows * heads; }
    int64_t padded_queries() const;
  };
  struct Call {
    ConstRows q;
    int64_t heads = 0;
    float scale = 1.0F;
    Rows out;
    int64_t width = 0;         // floats of a packed query
    int64_t state_floats = 0;  // floats of one AttendState
    bool inline_only = false;  // too little work to share
  };
  struct ThreadScratch {
    Scratch packed;
    const Unit* packed_unit = nullptr;  // whose queries `packed` has
    const Unit* asked_unit = nullptr;   // whose keys were asked for, of group `asked_group`
    int64_t asked_group = 0;
    Scratch scores;
    Scratch staged;
    Scratch states;
    std::vector<KeyRange> ranges;
  };

  void plan(Call& call, std::span<const AttendSegment> segments);
  void add_units(const Call& call, const AttendSegment& segment);
  const float* packed_queries(const Call& call, const Unit& unit, ThreadScratch& scratch) const;
  void run_whole_units(const Call& call);
  void run_split_units(const Call& call);
  void attend_group(const Call& call, const Unit& unit, int64_t group, int thread, AttendState out);
  void finish(const Call& call, const Unit& unit, const AttendState& state);
  void share(const Call& call, int64_t tasks, FunctionRef<void(int64_t task, int thread)> body);

  const VectorKernels& kernels_;
  ThreadPool& pool_;
  std::vector<Unit> units_;
  Scratch states_;
  std::vector<ThreadScratch> threads_;
  SharedStreams work_;
};

}  // namespace octet::cpu
