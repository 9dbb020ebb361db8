import math, numpy as np, torch, retrodict as rd
from retrodict.models.ctlstm import Cells, hidden_at
torch.manual_seed(0)
def cells_of_flights():
    from pathlib import Path
    p = Path("src/retrodict/datasets/flights_smoother")
    prop = rd.load(str(p)) if hasattr(rd,"load") else rd.load_proposal(str(p))
    m = prop.model
    import retrodict.datasets as ds
    s = rd.simulate(m, 60, end=float(24.0), seed=1)
    return m, s
def gather(m, s):
    # run each stream, collect cells after each event and the times to next and 3rd event
    out=[]; Ls=[]; rem=[]
    from retrodict.events.batch import make_batch
    b = make_batch(s, dtype=torch.float32, device="cpu")
    B,L=b.types.shape
    types=torch.cat([torch.full((B,1),m.num_types),b.types],1).t()
    scale=float(m.time_scale)
    gaps=(b.gaps/scale).float().t()
    cells,_=m.lstm.scan(types.contiguous(), gaps.contiguous(), None)
    ends=torch.cat([b.times, b.durations[:,None]],1)
    for i in range(L+1):
        ok = (torch.arange(1)*0+i<=b.mask.sum(1))
        for bb in torch.nonzero(ok)[:,0].tolist():
            n=int(b.mask[bb].sum())
            t0=0. if i==0 else float(b.times[bb,i-1])
            j=min(i+np.random.RandomState(i*1000+bb).geometric(.5)-1,n)
            t1=float(b.durations[bb]) if j>=n else float(b.times[bb,j])
            if t1<=t0: continue
            out.append([f[i,bb] for f in cells]); Ls.append((t1-t0)/scale)
    C=Cells(*[torch.stack([o[k] for o in out]) for k in range(4)])
    return C, torch.tensor(Ls)
import numpy as np
from numpy.polynomial import legendre as Lg
def lobatto(n):
    P=Lg.Legendre.basis(n-1); x=np.concatenate([[-1],np.sort(P.deriv().roots().real),[1]]); w=2/(n*(n-1)*P(x)**2); return (x+1)/2,w/2
def run(m,C,L,name):
    with torch.no_grad():
        C=Cells(*[f.double()[:,None] for f in C]); L=L.double(); V=m.readout.double(); sc=m.log_scale.double().exp()
        lam=lambda t:(sc*torch.nn.functional.softplus(hidden_at(C,t)@V.t()/sc)).sum(-1)
        def gl(n): 
            x,w=np.polynomial.legendre.leggauss(n); return torch.tensor((x+1)/2),torch.tensor(w/2)
        x,w=gl(200); ref=(lam(L[:,None]*x)*w).sum(1)*L
        k=C.decay[:,0].mean(1)
        row=[]
        for n in (6,8):
            x,w=gl(n); e=(lam(L[:,None]*x)*w).sum(1)*L-ref; row.append("GL%d t rms %.1e max %.1e"%(n,(e**2).mean().sqrt(),e.abs().max()))
        for fac in (.5,1.):
          kk=k*fac
          for n in (5,6,7,8):
            x,w=map(torch.tensor,lobatto(n)); vend=L/(1+kk*L); v=x*vend[:,None]; t=v/(1-kk[:,None]*v); jac=vend[:,None]/(1-kk[:,None]*v)**2
            e=(lam(t)*w*jac).sum(1)-ref; row.append("Lob%d v%.1f rms %.1e max %.1e"%(n,fac,(e**2).mean().sqrt(),e.abs().max()))
        print(name,"mean area %.2f"%ref.mean()," | ".join(row))
m,s=cells_of_flights(); s=rd.simulate(m,40,end=100.,seed=1); C,L=gather(m,s)
run(m,C,L,"flights"); run(m,C,L*4,"flights x4")
st=rd.simulate(rd.Poisson([.1]*10),20,end=32.,seed=1); mm=rd.NeuralHawkes.from_streams(st,64); C2,L2=gather(mm,st); run(mm,C2,L2,"untrained")
