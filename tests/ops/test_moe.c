/* The router's choice and the expert block against their formulas in double precision. */
#include "check.h"
#include "ops/moe/moe.h"

static struct weight matrix(int64_t n_out, int64_t n_in, uint64_t seed) {
    float *p = random_floats((size_t)(n_out * n_in), seed);
    for (int64_t i = 0; i < n_out * n_in; i++) p[i] /= sqrtf((float)n_in) / 3;
    return (struct weight){DT_F32, p, n_out, n_in, (size_t)n_in * 4, 1.0f};
}

static void ties_go_to_the_lower_expert(void) {
    const float z[] = {1, 3, 3, -2, 40, 50, 3};
    int32_t ids[4];
    float w[4];
    moe_choose_ref(z, 7, 4, ids, w);
    check_true("ties go to the lower expert, and saturated scores keep the order of the logits",
               ids[0] == 5 && ids[1] == 4 && ids[2] == 1 && ids[3] == 2);
    double s3 = 1 / (1 + exp(-3)),
           want[] = {1 / (2 + 2 * s3), 1 / (2 + 2 * s3), s3 / (2 + 2 * s3), s3 / (2 + 2 * s3)};
    check_close("weights are normalised sigmoids", w, want, 4, 1e-7, 1e-6);
}

static void mlp(const struct mlp *m, const double *a, int64_t hidden, double scale, double *y) {
    const float *g = m->gate.data, *u = m->up.data, *d = m->down.data;
    int64_t width = m->gate.n_out;
    for (int64_t k = 0; k < width; k++) {
        double gate = 0, up = 0;
        for (int64_t i = 0; i < hidden; i++) {
            gate += a[i] * g[k * hidden + i];
            up += a[i] * u[k * hidden + i];
        }
        double act = gate / (1 + exp(-gate)) * up;
        for (int64_t i = 0; i < hidden; i++) y[i] += scale * act * d[i * width + k];
    }
}

static void expect(const struct op_moe *p, const float *x, int64_t hidden, const int32_t *route,
                   double *y) {
    double a[128], z[32], sum = 0, total = 0;
    const float *r = p->router.data;
    bool used[32] = {false};
    int32_t ids[8];
    for (int64_t i = 0; i < hidden; i++) sum += (double)x[i] * x[i];
    for (int64_t i = 0; i < hidden; i++)
        a[i] = p->norm[i] * x[i] / sqrt(sum / (double)hidden + 1e-6);
    for (int64_t e = 0; e < p->n_expert; e++) {
        z[e] = 0;
        for (int64_t i = 0; i < hidden; i++) z[e] += a[i] * r[e * hidden + i];
    }
    for (int32_t k = 0; k < p->top_k; k++) {
        ids[k] = -1;
        for (int32_t e = 0; e < p->n_expert; e++)
            if (!used[e] && (ids[k] < 0 || z[e] > z[ids[k]])) ids[k] = e;
        used[ids[k]] = true;
        if (route) ids[k] = route[k];
        total += 1 / (1 + exp(-z[ids[k]]));
    }
    memset(y, 0, (size_t)hidden * sizeof *y);
    for (int32_t k = 0; k < p->top_k; k++)
        mlp(&p->expert[ids[k]], a, hidden, 1 / (1 + exp(-z[ids[k]])) / total, y);
    if (p->shared.gate.n_out) mlp(&p->shared, a, hidden, 1, y);
    for (int64_t i = 0; i < hidden; i++) y[i] += x[i];
}

static void moe_case(int32_t hidden, int32_t n_expert, int32_t top_k, int32_t width, int32_t shared,
                     int32_t n_row, bool injected) {
    struct device *d;
    device_open_cpu(&d, 2, NULL);
    struct mlp *expert = calloc((size_t)n_expert, sizeof *expert);
    for (int32_t e = 0; e < n_expert; e++)
        expert[e] = (struct mlp){matrix(width, hidden, 100u + (unsigned)e),
                                 matrix(width, hidden, 200u + (unsigned)e),
                                 matrix(hidden, width, 300u + (unsigned)e)};
    struct mlp both = {matrix(shared, hidden, 1), matrix(shared, hidden, 2),
                       matrix(hidden, shared, 3)};
    size_t rows = (size_t)n_row, slots = rows * (size_t)top_k, h = (size_t)hidden;
    float *norm = random_floats(h, 5), *x = random_floats(rows * h, 6);
    struct op op = {.kind = OP_MOE, .hidden = hidden, .eps = 1e-6f, .x = malloc(rows * h * 4)};
    memcpy(op.x, x, rows * h * 4);
    struct op_moe *p = &op.u.moe;
    *p = (struct op_moe){.norm = norm,
                         .router = matrix(n_expert, hidden, 7),
                         .expert = expert,
                         .shared = both,
                         .n_expert = n_expert,
                         .top_k = top_k,
                         .a = calloc(rows * h, 4),
                         .y = calloc(rows * h, 4),
                         .logits = calloc(rows * (size_t)n_expert, 4),
                         .ids = calloc(slots, 4),
                         .weights = calloc(slots, 4),
                         .act = calloc(slots * 2 * (size_t)width, 4),
                         .each = calloc(slots * h, 4),
                         .gate = calloc(rows * (size_t)shared + 1, 4),
                         .up = calloc(rows * (size_t)shared + 1, 4),
                         .order = calloc(2 * slots + (size_t)n_expert + 1, 4)};
    int32_t *route = malloc(slots * 4 + 4);
    for (size_t i = 0; i < slots; i++) route[i] = (int32_t)((i * 7 + 3) % (size_t)n_expert);
    struct step s = {.n_row = n_row, .route = injected ? route : NULL};
    moe_ref(d, &op, &s, NULL);
    double *want = malloc(h * sizeof *want);
    char name[128];
    for (int32_t r = 0; r<n_row; r += n_row> 3 ? n_row / 3 : 1) {
        expect(p, x + (size_t)r * h, hidden, injected ? route + r * top_k : NULL, want);
        snprintf(name, sizeof name, "experts %d top %d, width %d, shared %d, row %d of %d%s",
                 n_expert, top_k, width, shared, r, n_row, injected ? ", given routes" : "");
        check_close(name, op.x + (size_t)r * h, want, h, 2e-6, 2e-5);
    }
    if (injected) {
        route[0] = n_expert;
        sumi_error err;
        check_true("a route outside the experts is refused",
                   moe_ref(d, &op, &s, &err) == SUMI_ERR_ARG && strlen(err.msg) > 10);
    }
    for (int32_t e = 0; e <= n_expert; e++) {
        struct mlp *m = e < n_expert ? &expert[e] : &both;
        free((void *)(uintptr_t)m->gate.data);
        free((void *)(uintptr_t)m->up.data);
        free((void *)(uintptr_t)m->down.data);
    }
    free((void *)(uintptr_t)p->router.data);
    void *all[] = {expert,     norm,   x,       op.x,    p->a,  p->y,     p->logits, p->ids,
                   p->weights, p->act, p->each, p->gate, p->up, p->order, route,     want};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    device_close(d);
}

int main(void) {
    ties_go_to_the_lower_expert();
    moe_case(64, 8, 2, 64, 128, 1, false);
    moe_case(64, 8, 2, 64, 128, 9, false);
    moe_case(33, 5, 5, 17, 3, 4, false);
    moe_case(64, 1, 1, 16, 0, 3, false);
    moe_case(64, 16, 6, 32, 16, 40, true);
    return n_failed != 0;
}
