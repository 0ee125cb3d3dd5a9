#include "octet/speculation/block_policy.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "octet/base/check.h"

namespace octet {
namespace {

// A place's acceptance before anything was seen, and how many observations it weighs: high, so that
// a new sequence begins by drafting; light, so that a few bad blocks end it. For a draft with a
// confidence, that is what is expected of it.
constexpr double kPlaceAcceptance = 0.75;
constexpr double kPlaceWeight = 1.0;
constexpr double kConfidenceWeight = 4.0;
// How many observations of its own what is known of other texts weighs.
constexpr double kOthersWeight = 4.0;
// Share of the past that one more observation of a class keeps, and that a step keeps of all
// classes: what was cut off for long is tried again, because its record fades into the expectation.
constexpr double kClassMemory = 0.995;
constexpr double kStepMemory = 0.997;

// Share of the past that one more drafted step keeps in the balance of tokens and time.
constexpr double kBalanceMemory = 0.98;
// The balance is seen as though so many full blocks more had been so much faster than plain steps:
// one bad block at the start proves nothing, a few do.
constexpr double kTrustBlocks = 3.0;
// The same where looks have begun it again: they may have met a phrase.
constexpr double kTrustBlocksAfterLooks = 2.0;
constexpr double kTrustSpeedup = 1.4;
// Drafting is given up when it is slower by this: the balance scatters, and coming back takes time.
constexpr double kPatience = 1.02;
// It is taken up again without a look when costs of today make the same balance so much faster for
// so many steps: what disturbs the machine while nothing is drafted raises the cost of plain steps
// alone, because they are what it meets.
constexpr double kReturn = 1.05;
constexpr int kStepsToReturn = 16;
// Where a plain step is so much dearer than when drafting was given up, plain steps come often at
// first, should that pass later.
constexpr double kSuspiciousRise = 1.25;
constexpr int64_t kPlainDistanceInSuspicion = 4;
constexpr int kPlainStepsInSuspicion = 24;

// While drafting does not pay, looks at it may cost this share of plain decoding.
constexpr double kProbeShare = 0.0025;
constexpr int64_t kLeastProbeDistance = 16;
constexpr int64_t kMostProbeDistance = 2048;
// After a look that would have beaten plain decoding, so many more have to beat it together; the
// first does not count, because it was picked for its luck.
constexpr int kLooksInARow = 2;
// Fewer blocks than this before drafting is given up again were a false alarm, and what was found
// before stands: looks do not hurry.
constexpr double kFalseAlarmBlocks = 32.0;
// So many positions before a look its drafter is fed again.
// They are injected with the look, in one go, and so paid for as a part of it.
constexpr int64_t kContextForLook = 32;
// While it pays, a plain step now and then keeps its cost known: seldom where drafting is clearly
// faster, because such a step forgoes the gain.
constexpr int64_t kPlainDistance = 512;
constexpr int64_t kPlainDistanceInDoubt = 64;
constexpr double kDoubtfulSpeedup = 1.25;
// A plain step's cost older than this is measured again before drafting is given up over it.
constexpr int64_t kFreshPasses = 24;
// While drafting, what blocks cost is measured again when it is older than this: a length that an
// outlier made look dear would never be tried again.
constexpr int64_t kRefreshPasses = 150;
// So many observations of a cost make it one to judge by.
constexpr int kSureCount = 2;
// So many blocks in a row that are cut show that full ones do not come, where replies are short.
constexpr int kShortBlocks = 8;
// Observations from before so many passes are of another time.
constexpr int64_t kStalePasses = 200;

constexpr std::array<float, 12> kConfidenceEdges = {
    0.05F, 0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F, 0.95F, 0.98F};

int confidence_class(float confidence) {
  return static_cast<int>(
      std::upper_bound(kConfidenceEdges.begin(), kConfidenceEdges.end(), confidence) -
      kConfidenceEdges.begin()
  );
}

}  // namespace

void StepCosts::Samples::add(double ms, int64_t pass) {
  if (pass - last_pass > kStalePasses) {
    count = 0;
  }
  recent[static_cast<size_t>(count) % recent.size()] = ms;
  ++count;
  last_pass = pass;
  std::array<double, 15> sorted = recent;
  const auto used = std::min<size_t>(static_cast<size_t>(count), sorted.size());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((used - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(used));
  median = *middle;
}

void StepCosts::observe_forward(int rows, double ms) {
  OCTET_CHECK(rows >= 1);
  ++passes_;
  if (rows <= kMaxRows) {
    forward_[static_cast<size_t>(rows)].add(ms, passes_);
  }
}

void StepCosts::observe_draft(double ms) {
  draft_.add(ms, passes_);
}

void StepCosts::observe_look(double ms) {
  look_.add(ms, passes_);
}

int64_t StepCosts::forward_age(int rows) const {
  return passes_ - forward_[static_cast<size_t>(rows)].last_pass;
}

bool StepCosts::knows_forward(int rows) const {
  return forward_[static_cast<size_t>(rows)].count > 0;
}

bool StepCosts::sure_of_forward(int rows) const {
  return forward_[static_cast<size_t>(rows)].count >= kSureCount;
}

double StepCosts::forward_ms(int rows) const {
  if (knows_forward(rows)) {
    return forward_[static_cast<size_t>(rows)].median;
  }
  int below = rows;
  while (below >= 1 && !knows_forward(below)) {
    --below;
  }
  int above = rows;
  while (above <= kMaxRows && !knows_forward(above)) {
    ++above;
  }
  const bool has_below = below >= 1;
  const bool has_above = above <= kMaxRows;
  if (!has_below && !has_above) {
    return 0.0;
  }
  if (!has_below || !has_above) {
    return forward_[static_cast<size_t>(has_below ? below : above)].median;
  }
  const double low = forward_[static_cast<size_t>(below)].median;
  const double high = forward_[static_cast<size_t>(above)].median;
  return low +
         (high - low) * static_cast<double>(rows - below) / static_cast<double>(above - below);
}

BlockPolicy::BlockPolicy(const StepCosts& costs, int max_drafts)
    : costs_(costs),
      max_drafts_(std::min(max_drafts, kMaxDrafts)),
      trust_blocks_(kTrustBlocks),
      until_plain_(kPlainDistance) {}

BlockPolicy BlockPolicy::for_another_text() const {
  BlockPolicy other = *this;
  other.abandon_look();
  other.end_run();  // looks in a row are of one text
  other.check_cost_ = false;
  return other;
}

void BlockPolicy::Record::add(bool right) {
  trials = trials * kClassMemory + 1.0;
  hits = hits * kClassMemory + (right ? 1.0 : 0.0);
}

/// That the draft of a row is right when those before it are.
double BlockPolicy::probability(int row, std::span<const float> confidence) const {
  if (!confidence.empty()) {
    const float sure = confidence[static_cast<size_t>(row)];
    const Record& seen = by_confidence_[static_cast<size_t>(confidence_class(sure))];
    return (seen.hits + kConfidenceWeight * static_cast<double>(sure)) /
           (seen.trials + kConfidenceWeight);
  }
  // A place is expected to do as well as the one before it, until it was seen: blocks that were
  // kept short then grow again where the text is easy.
  double expected = kPlaceAcceptance;
  for (int place = 0; place <= row; ++place) {
    const Record& seen = by_place_[static_cast<size_t>(place)];
    expected = (seen.hits + kPlaceWeight * expected) / (seen.trials + kPlaceWeight);
  }
  return expected;
}

double BlockPolicy::conditional(int k, double expected) const {
  const Record& seen = by_place_[static_cast<size_t>(k)];
  return (seen.hits + kOthersWeight * expected) / (seen.trials + kOthersWeight);
}

void BlockPolicy::learn(int row, std::span<const int> classes, bool right) {
  const auto at = static_cast<size_t>(row);
  by_place_[at].add(right);
  if (at < classes.size()) {
    by_confidence_[static_cast<size_t>(classes[at])].add(right);
  }
}

/// The longest block whose cost can be learnt.
int BlockPolicy::longest_block() const {
  return short_blocks_ < kShortBlocks ? max_drafts_ : longest_short_;
}

/// The cost curve is learnt from use. The length to try next before anything can be judged; -1 when
/// enough is known.
int BlockPolicy::unknown_cost() const {
  const int longest = longest_block();
  if (longest > 0 && (!costs_.knows_draft() || !costs_.sure_of_forward(longest + 1))) {
    return longest;
  }
  return costs_.sure_of_forward(1) ? -1 : 0;
}

/// The length to try for the sake of its cost where drafting pays; -1: none.
int BlockPolicy::cost_to_refresh() const {
  const int longest = longest_block();
  const int middle = longest / 2;
  if (middle >= 1 &&
      (!costs_.sure_of_forward(middle + 1) || costs_.forward_age(middle + 1) > kRefreshPasses)) {
    return middle;
  }
  return longest >= 1 && costs_.forward_age(longest + 1) > kRefreshPasses ? longest : -1;
}

/// A step that drafts and passes `rows` rows through the target.
double BlockPolicy::block_ms(int rows) const {
  return costs_.draft_ms() + costs_.forward_ms(rows);
}

/// What the steps of the balance cost today.
double BlockPolicy::balance_ms() const {
  double ms = 0.0;
  for (size_t rows = 1; rows < blocks_.size(); ++rows) {
    if (blocks_[rows] > 0.0) {
      ms += blocks_[rows] * block_ms(static_cast<int>(rows));
    }
  }
  return ms;
}

double BlockPolicy::ms_per_token() const {
  const double plain = std::max(costs_.forward_ms(1), 1e-9);
  const double trust_ms = trust_blocks_ * block_ms(max_drafts_ + 1);
  return (trust_ms + balance_ms()) / (tokens_ + kTrustSpeedup * trust_ms / plain);
}

int64_t BlockPolicy::probe_distance() const {
  const double plain = std::max(costs_.forward_ms(1), 1e-9);
  const auto distance = static_cast<int64_t>(costs_.look_ms() / (kProbeShare * plain));
  // The first looks come sooner: a judgement made in haste is corrected early.
  const int64_t hurry = looks_ < 3 ? int64_t{8} >> looks_ : 1;
  return std::clamp(distance / hurry, kLeastProbeDistance, kMostProbeDistance);
}

bool BlockPolicy::wants_features() const {
  return drafting_ || looking_ || !look_.drafts.empty() || until_probe_ <= kContextForLook;
}

int BlockPolicy::next_drafts() {
  forget();
  forced_ = -1;
  looking_ = false;
  if (max_drafts_ == 0) {
    return 0;
  }
  if (const int unknown = unknown_cost(); unknown >= 0) {
    forced_ = unknown;
    return unknown == 0 ? 0 : max_drafts_;
  }
  if (!drafting_) {
    begin_if_cheaper();
  }
  return drafting_ ? next_of_drafting() : next_of_plain();
}

/// Costs have turned out to be others. What was seen has to say so by itself, without trust.
void BlockPolicy::begin_if_cheaper() {
  const bool cheaper = kReturn * balance_ms() < tokens_ * costs_.forward_ms(1);
  cheaper_steps_ = cheaper ? cheaper_steps_ + 1 : 0;
  if (cheaper_steps_ >= kStepsToReturn) {
    begin();
  }
}

int BlockPolicy::next_of_plain() {
  if (std::exchange(check_cost_, false)) {
    forced_ = max_drafts_;
    return max_drafts_;
  }
  if (--until_probe_ > 0) {
    return 0;
  }
  ++looks_;
  until_probe_ = probe_distance();
  looking_ = true;
  return max_drafts_;
}

int BlockPolicy::next_of_drafting() {
  const double plain_ms = costs_.forward_ms(1);
  if (ms_per_token() > kPatience * plain_ms) {
    if (costs_.forward_age(1) <= kFreshPasses) {
      drafting_ = false;
      plain_ms_given_up_ = plain_ms;
      const double blocks = std::accumulate(blocks_.begin(), blocks_.end(), 0.0);
      looks_ = blocks < kFalseAlarmBlocks ? looks_ : 0;
      until_probe_ = probe_distance();
    }
    return 0;
  }
  if (const int length = cost_to_refresh(); length >= 0) {
    forced_ = length;
    return max_drafts_;
  }
  const bool doubtful = ms_per_token() * kDoubtfulSpeedup > plain_ms;
  if (--until_plain_ <= 0 || (doubtful && costs_.forward_age(1) > kPlainDistanceInDoubt)) {
    suspicion_ = std::max(0, suspicion_ - 1);
    until_plain_ = suspicion_ > 0 ? kPlainDistanceInSuspicion : kPlainDistance;
    return 0;
  }
  return max_drafts_;
}

bool BlockPolicy::suspicious() const {
  return costs_.forward_ms(1) > kSuspiciousRise * plain_ms_given_up_;
}

void BlockPolicy::begin() {
  drafting_ = true;
  cheaper_steps_ = 0;
  suspicion_ = suspicious() ? kPlainStepsInSuspicion : 0;
  until_plain_ = suspicion_ > 0 ? kPlainDistanceInSuspicion : until_plain_;
}

/// The length whose rows gain most over their cost, when time is worth what it presently yields:
/// then tokens over time is greatest in the long run.
int BlockPolicy::best_length(int drafted, std::span<const float> confidence) const {
  const double worth_ms = std::min(ms_per_token(), costs_.forward_ms(1));
  double joint = 1.0;
  double tokens = 1.0;
  double best_gain = tokens * worth_ms - costs_.forward_ms(1);
  int best = 0;
  for (int length = 1; length <= drafted; ++length) {
    joint *= probability(length - 1, confidence);
    tokens += joint;
    const double gain = tokens * worth_ms - costs_.forward_ms(length + 1);
    if (gain > best_gain) {
      best_gain = gain;
      best = length;
    }
  }
  return best;
}

int BlockPolicy::keep(std::span<const TokenId> drafts, std::span<const float> confidence) {
  const auto drafted = static_cast<int>(std::ssize(drafts));
  OCTET_CHECK(drafted <= kMaxDrafts);
  OCTET_CHECK(confidence.empty() || std::ssize(confidence) >= drafted);
  const bool cut = drafted < max_drafts_;
  short_blocks_ = cut ? short_blocks_ + 1 : 0;
  longest_short_ = cut ? std::max(longest_short_, drafted) : 0;
  std::vector<int> classes;
  for (int row = 0; row < drafted && !confidence.empty(); ++row) {
    classes.push_back(confidence_class(confidence[static_cast<size_t>(row)]));
  }
  int kept = best_length(drafted, confidence);
  if (looking_) {
    look_ = {
        std::vector<TokenId>(drafts.begin(), drafts.end()),
        std::move(classes),
        confidence.empty() ? drafted : kept,
        0};
    return 0;
  }
  if (forced_ >= 0 && forced_ <= drafted) {  // a shorter block would not tell what is asked
    kept = forced_;
  }
  classes_ = std::move(classes);
  if (kept == 0) {
    pay(1.0, 1);
  }
  return kept;
}

void BlockPolicy::observe(int drafted, int accepted, int judged) {
  OCTET_CHECK(accepted <= drafted && judged <= drafted);
  for (int row = 0; row < judged; ++row) {
    learn(row, classes_, row < accepted);
  }
  classes_.clear();
  if (drafted > 0) {
    pay(accepted + 1.0, drafted + 1);
  }
}

void BlockPolicy::published(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (look_.drafts.empty()) {
      return;
    }
    const bool right = token == look_.drafts[look_.met];
    learn(static_cast<int>(look_.met), look_.classes, right);
    look_.met += right ? 1 : 0;
    if (!right || look_.met == look_.drafts.size()) {
      judge_look(static_cast<int>(look_.met));
      look_ = Look();
    }
  }
}

/// `right`: the drafts of the look that the text went on with. A look that would have beaten plain
/// decoding is followed by others at once: luck does not last, and a look costs only its draft.
void BlockPolicy::judge_look(int right) {
  const double tokens = std::min(right, look_.kept) + 1.0;
  const double plain_ms = costs_.forward_ms(1);
  pay(tokens, look_.kept + 1);
  const double ms = block_ms(look_.kept + 1);
  if (run_ > 0) {
    run_tokens_ += tokens;
    run_ms_ += ms;
  }
  if (run_ > 0 ? run_tokens_ * plain_ms > run_ms_ : tokens * plain_ms > ms) {
    if (run_++ < kLooksInARow) {
      until_probe_ = 0;
      return;
    }
    begin();
    trust_blocks_ = kTrustBlocksAfterLooks;
    tokens_ = 0.0;
    blocks_.fill(0.0);
  }
  end_run();
  // Good drafts, and only a cost of long ago speaks against them: see what it is now.
  const bool old = costs_.forward_age(max_drafts_ + 1) > kStalePasses;
  if (!drafting_ && old && (right + 1.0) * plain_ms > costs_.draft_ms() + plain_ms) {
    check_cost_ = true;
  }
}

void BlockPolicy::end_run() {
  run_ = 0;
  run_tokens_ = 0.0;
  run_ms_ = 0.0;
}

/// Adds a drafted step to the balance.
void BlockPolicy::pay(double tokens, int rows) {
  for (double& blocks : blocks_) {
    blocks *= kBalanceMemory;
  }
  tokens_ = tokens_ * kBalanceMemory + tokens;
  blocks_[static_cast<size_t>(rows)] += 1.0;
}

void BlockPolicy::forget() {
  for (const std::span<Record> records :
       {std::span<Record>(by_confidence_), std::span<Record>(by_place_)}) {
    for (Record& seen : records) {
      seen.hits *= kStepMemory;
      seen.trials *= kStepMemory;
    }
  }
}

}  // namespace octet
