#include "octet/train/target_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/models/run_text.h"

namespace octet::train {
namespace {

/// Bounds the logits in memory: so many rows of the vocabulary are formed together.
constexpr int64_t kTeacherRows = 64;

/// Row i of `logits` is that of the position known[i]; these ascend.
void copy_logits(
    ConstRows logits,
    std::span<const int64_t> known,
    std::span<const int64_t> positions,
    const Tensor& teacher
) {
  auto* to = teacher.data_ptr<float>();
  for (const int64_t position : positions) {
    const auto place = std::lower_bound(known.begin(), known.end(), position);
    if (place != known.end() && *place == position) {
      std::copy_n(logits.row(place - known.begin()), logits.cols, to);
    }
    to += logits.cols;
  }
}

/// Distinct and ascending: blocks of near anchors ask for the same ones.
std::vector<int64_t> distinct_below(std::span<const int64_t> positions, int64_t end) {
  std::vector<int64_t> distinct(positions.begin(), positions.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  distinct.erase(std::lower_bound(distinct.begin(), distinct.end(), end), distinct.end());
  return distinct;
}

}  // namespace

EngineSource::EngineSource(
    TargetModel& target, std::span<const TrainingText> texts, std::vector<int> taps
)
    : target_(target), texts_(texts), taps_(std::move(taps)) {}

Tensor EngineSource::read(int64_t text, std::span<const int64_t> positions, const Tensor& teacher) {
  const std::vector<TokenId>& tokens = texts_[static_cast<size_t>(text)].tokens;
  const int64_t count = std::ssize(tokens) - 1;
  const int64_t width = std::ssize(taps_) * target_.shape().hidden;
  Tensor features = at::empty({count, width}, at::kFloat);
  auto* to = features.data_ptr<float>();
  std::vector<int64_t> known;  // positions of the rows at hand
  run_text(
      target_,
      std::span(tokens).first(static_cast<size_t>(count)),
      {.taps = taps_, .all_logits = !positions.empty()},
      [&](const ForwardRows& out) {
        for (int64_t r = 0; r < out.features.rows; ++r) {
          to = std::copy_n(out.features.row(r), width, to);
        }
        if (!positions.empty()) {
          const int64_t first = known.empty() ? 0 : known.back() + 1;
          known.resize(static_cast<size_t>(out.logits.rows));
          std::iota(known.begin(), known.end(), first);
          copy_logits(out.logits, known, positions, teacher);
        }
      }
  );
  return features;
}

RecordedSource::RecordedSource(
    const RecordedTexts& recorded, std::vector<int> taps, OutputLogits* logits
)
    : recorded_(recorded), taps_(std::move(taps)), logits_(logits) {
  for (const FeatureFile& file : recorded.files) {
    file.require_taps(taps_);
    if (logits != nullptr && !file.header().has_tap(logits->last_layer())) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "{}: has no states of the target's last layer ({}), of which the distributions that "
              "teach are formed; record them with `octet generate-data --teacher-states`, or give "
              "--teacher tokens",
              file.path(),
              logits->last_layer()
          )
      );
    }
  }
}

Tensor RecordedSource::read(
    int64_t text, std::span<const int64_t> positions, const Tensor& teacher
) {
  const std::vector<float> values = recorded_.features(text, taps_);
  const int64_t count = std::ssize(texts()[static_cast<size_t>(text)].tokens) - 1;
  Tensor features = at::empty({count, std::ssize(values) / count}, at::kFloat);
  std::copy(values.begin(), values.end(), features.data_ptr<float>());
  if (!positions.empty()) {
    teach(text, positions, teacher);
  }
  return features;
}

/// The head over the positions that are asked for alone, each once.
void RecordedSource::teach(
    int64_t text, std::span<const int64_t> positions, const Tensor& teacher
) {
  OCTET_CHECK(logits_ != nullptr);
  const int last_layer = logits_->last_layer();
  std::vector<float> states = recorded_.features(text, {&last_layer, 1});
  const int64_t count = std::ssize(texts()[static_cast<size_t>(text)].tokens) - 1;
  const int64_t hidden = std::ssize(states) / count;
  const std::vector<int64_t> wanted = distinct_below(positions, count);
  std::vector<float> asked(static_cast<size_t>(kTeacherRows * hidden));
  std::vector<float> storage(static_cast<size_t>(kTeacherRows * logits_->vocabulary()));
  for (int64_t begin = 0; begin < std::ssize(wanted); begin += kTeacherRows) {
    const int64_t rows = std::min(kTeacherRows, std::ssize(wanted) - begin);
    const auto part =
        std::span(wanted).subspan(static_cast<size_t>(begin), static_cast<size_t>(rows));
    float* to = asked.data();
    for (const int64_t position : part) {
      to = std::copy_n(states.data() + position * hidden, hidden, to);
    }
    const Rows logits{storage.data(), rows, logits_->vocabulary(), logits_->vocabulary()};
    logits_->from_states({asked.data(), rows, hidden, hidden}, logits);
    copy_logits(logits, part, positions, teacher);
  }
}

}  // namespace octet::train
