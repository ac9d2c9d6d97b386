// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of queues into user space. rdmavt's mappings lead back to the
 * user context when they are closed, and a process may well close its own
 * after the device has vanished and the context with it. So each goes through
 * here: once its context is gone, closing it does nothing more than that, and
 * the few pages of the queue stay behind.
 */
#include <linux/module.h>
#include <linux/mm.h>

#include "simhca.h"

struct mapping {
	struct list_head list;
	void *info;			/* rdmavt's vm_private_data */
	struct ib_ucontext *context;
	int vmas;
};

static DEFINE_MUTEX(map_lock);		/* inside mmap_lock */
static LIST_HEAD(mappings);
static const struct vm_operations_struct *rvt_vm_ops;
static int (*rvt_mmap)(struct ib_ucontext *context,
		       struct vm_area_struct *vma);

static struct mapping *find(void *info)
{
	struct mapping *m;

	list_for_each_entry(m, &mappings, list)
		if (m->info == info)
			return m;
	return NULL;
}

/* A fork or a split: one area more of the same mapping. */
static void area_open(struct vm_area_struct *vma)
{
	struct mapping *m;

	__module_get(THIS_MODULE);
	mutex_lock(&map_lock);
	m = find(vma->vm_private_data);
	if (m) {
		m->vmas++;
		rvt_vm_ops->open(vma);
	}
	mutex_unlock(&map_lock);
}

static void area_close(struct vm_area_struct *vma)
{
	struct mapping *m;

	mutex_lock(&map_lock);
	m = find(vma->vm_private_data);
	if (m) {
		if (!--m->vmas) {
			list_del(&m->list);
			kfree(m);
		}
		rvt_vm_ops->close(vma);
	}
	mutex_unlock(&map_lock);
	module_put(THIS_MODULE);
}

static const struct vm_operations_struct area_ops = {
	.open = area_open,
	.close = area_close,
};

static int map(struct ib_ucontext *context, struct vm_area_struct *vma)
{
	struct mapping *m, *old;
	int ret;

	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	mutex_lock(&map_lock);
	ret = rvt_mmap(context, vma);
	if (!ret && vma->vm_ops) {
		__module_get(THIS_MODULE);
		rvt_vm_ops = vma->vm_ops;
		vma->vm_ops = &area_ops;
		old = find(vma->vm_private_data);
		if (old) {
			old->vmas++;
		} else {
			m->info = vma->vm_private_data;
			m->context = context;
			m->vmas = 1;
			list_add(&m->list, &mappings);
			m = NULL;
		}
	}
	mutex_unlock(&map_lock);
	kfree(m);
	return ret;
}

/* Step in between the core and rdmavt, once rdmavt has set its operations. */
void sim_map_setup(struct sim_hca *h)
{
	if (h->rdi.ibdev.ops.mmap == map)
		return;
	rvt_mmap = h->rdi.ibdev.ops.mmap;
	WRITE_ONCE(h->rdi.ibdev.ops.mmap, map);
}

/*
 * The device vanishes or moves to another namespace under a process. Without
 * this operation neither could happen while one has it open.
 */
void sim_map_disassociate(struct ib_ucontext *context)
{
	struct mapping *m, *next;

	mutex_lock(&map_lock);
	list_for_each_entry_safe(m, next, &mappings, list) {
		if (m->context == context) {
			list_del(&m->list);
			kfree(m);
		}
	}
	mutex_unlock(&map_lock);
}
